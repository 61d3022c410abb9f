package adopt

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"redlockctl/deploy"
)

// kubernetesPage is what the kustomization needs besides.
type kubernetesPage struct {
	page
	Namespace string
	// Blocks are the networks of the masters; none: one is known by its name alone.
	Blocks, Ports []string
}

// mostNamespace is how long the name of a namespace may be.
const mostNamespace = 63

var (
	notInNamespaces = regexp.MustCompile(`[^a-z0-9]+`)
	ordinaryImage   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]*$`)
)

// Check tells what cannot be asked for together, whatever the masters are.
func (a Answers) Check() error {
	switch {
	case a.Kubernetes == "":
		return nil
	case a.WithoutGuard:
		return errors.New("--kubernetes and --without-guard: what runs there is the guard")
	case a.Cert != "" || a.Key != "":
		return errors.New("--kubernetes: a client's certificate and key are not put there; write them into a secret of your own and take the manifests of deploy/kubernetes")
	case !ordinaryImage.MatchString(a.Kubernetes):
		return fmt.Errorf("--kubernetes %q: name the image, such as registry.example.com/redlockctl:1.0.0", a.Kubernetes)
	}
	return nil
}

// kubernetes is how guards there reach the masters, or why they cannot.
func (p page) kubernetes() (kubernetesPage, error) {
	k := kubernetesPage{page: p}
	if err := p.Check(); err != nil || p.Kubernetes == "" {
		return k, err
	}
	k.Namespace = "redlock"
	if name := notInNamespaces.ReplaceAllString(strings.ToLower(p.Cluster), "-"); name != "redlock" {
		k.Namespace += "-" + name
	}
	k.Namespace = strings.Trim(k.Namespace[:min(len(k.Namespace), mostNamespace)], "-")
	named := false
	for _, h := range p.Hosts {
		if h.SSH == "" {
			return k, fmt.Errorf("--kubernetes: no pod reaches %s at %s; name the masters by addresses that others reach", h.Name, h.Addr)
		}
		k.Ports = append(k.Ports, h.Port)
		if ip, err := netip.ParseAddr(h.SSH); err == nil {
			k.Blocks = append(k.Blocks, netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen()).String())
		} else {
			named = true
		}
	}
	slices.Sort(k.Ports)
	k.Ports = slices.Compact(k.Ports)
	if named {
		k.Blocks = nil
	}
	return k, nil
}

// guardBase are the files of the base on which the kustomization builds.
func guardBase() (files []File, err error) {
	err = fs.WalkDir(deploy.Guards, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := deploy.Guards.ReadFile(path)
		files = append(files, File{Path: path, Mode: 0o644, Text: string(text)})
		return err
	})
	return files, err
}
