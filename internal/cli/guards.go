package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"redlockctl/internal/cli/exit"
	"redlockctl/internal/config"
	"redlockctl/internal/metrics"
	"redlockctl/internal/safetext"
)

// asking are the flags by which the guard that listens at an address is asked.
type asking struct{ url, ca, passwordFile string }

func (k *asking) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&k.url, "url", "", "ask the guard that listens there too, such as http://127.0.0.1:9622 or https://USER@HOST:9622")
	cmd.Flags().StringVar(&k.ca, "url-ca", "", "with --url: a file (PEM) of who vouches for its certificate")
	cmd.Flags().StringVar(&k.passwordFile, "url-password-file", "", "with --url: a file (mode 0600) that holds the password of its user (default $"+config.URLPasswordVariable+")")
}

func (k *asking) access(getenv func(string) string) (access metrics.Access, err error) {
	access.Password = getenv(config.URLPasswordVariable)
	if k.passwordFile != "" {
		if access.Password, err = config.ReadSecret(k.passwordFile, getenv); err != nil {
			return access, exit.Usagef("--url-password-file: %w", err)
		}
	}
	if k.ca != "" {
		if access.CA, err = os.ReadFile(k.ca); err != nil {
			return access, exit.Usagef("--url-ca: %w", err)
		}
	}
	return access, nil
}

// ask asks the guard that listens at the address of --url; nil: there is none.
func (a *commandLine) ask(ctx context.Context, cfg *config.Config, k asking) (*metrics.Told, error) {
	if k.url == "" {
		if k.ca+k.passwordFile != "" {
			return nil, exit.Usagef("--url-ca and --url-password-file are for --url")
		}
		return nil, nil
	}
	access, err := k.access(a.Getenv)
	if err != nil {
		return nil, err
	}
	told, err := metrics.ReadStatus(ctx, k.url, cfg.Cluster.Name, access)
	switch {
	case errors.Is(err, metrics.ErrCA):
		return nil, exit.Usagef("--url-ca %q: %w", k.ca, err)
	case errors.Is(err, metrics.ErrURL), errors.Is(err, metrics.ErrPasswordInURL), errors.Is(err, metrics.ErrPlain):
		return nil, exit.Usagef("--url: %w", err) // without the address, which may have a password
	case errors.Is(err, metrics.ErrAccess):
		return nil, fmt.Errorf("--url: %w: write https://USER@HOST:PORT, and give the password by --url-password-file or $%s", err, config.URLPasswordVariable)
	case err != nil:
		return nil, fmt.Errorf("--url: %w", err)
	case told.Cluster != cfg.Cluster.Name:
		return nil, fmt.Errorf("--url: the guard there is one of the cluster %s, not of %q", safetext.New(told.Cluster).Word(), cfg.Cluster.Name)
	}
	return &told, nil
}
