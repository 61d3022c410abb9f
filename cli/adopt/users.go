package adopt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"redlockctl/internal/operator"
	"redlockctl/redlock"
	"redlockctl/server/resp"
)

// What [Folder.ChangeUsers] can do with the folder's users.
const (
	MakeUsers   = "make"
	DeleteUsers = "delete"
)

// usersCommands is the file of a node with the commands that make the users.
const usersCommands = "users.redis"

// ChangeUsers makes the folder's users on the masters that run, or deletes them, as a user
// who may: each node logs in by itself. It goes on after a node that fails, and tells what
// became of each.
func (f Folder) ChangeUsers(ctx context.Context, op *operator.Operator, change string, tell func(node, what string)) error {
	var names []string
	for _, u := range users {
		names = append(names, u.name)
	}
	path, err := filepath.Abs(f.Path)
	if err != nil {
		return err
	}
	var failed []error
	for _, n := range op.Nodes() {
		commands, err := f.userCommands(n, change)
		if err != nil {
			return err // of another folder: nothing was sent to this node, or to those after it
		}
		err = op.ChangeUsers("users "+change, n.Name(), strings.Join(names, ", "), "init: users of the folder "+path, func(n *redlock.Node) (string, error) {
			done := len(commands)
			last, err := send(ctx, n, commands)
			if err != nil {
				return "", err
			}
			if deleted, ok := last.(int64); ok {
				done = int(deleted)
			}
			told := fmt.Sprintf("%d users %s", done, map[string]string{MakeUsers: "made", DeleteUsers: "deleted"}[change])
			tell(n.Name(), told)
			return told, nil
		})
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", n.Name(), err))
		}
	}
	return errors.Join(failed...)
}

// userCommands returns the commands for a node.
func (f Folder) userCommands(n *redlock.Node, change string) (commands [][]any, err error) {
	text, err := os.ReadFile(filepath.Join(f.Path, n.Name(), usersCommands))
	if err != nil {
		return nil, fmt.Errorf("%s: the folder has no users for it: %w", n.Name(), err)
	}
	if change == DeleteUsers {
		command := []any{"ACL", "DELUSER"}
		for _, u := range users {
			command = append(command, u.name)
		}
		return [][]any{command}, nil
	}
	for line := range strings.Lines(string(text)) {
		var command []any
		for _, word := range strings.Fields(line) {
			command = append(command, word)
		}
		if len(command) > 0 {
			commands = append(commands, command)
		}
	}
	return commands, nil
}

// send sends commands to a node, up to the first that fails, and returns the last reply.
func send(ctx context.Context, n *redlock.Node, commands [][]any) (last any, err error) {
	defer resp.Contain(&err, n.Name())
	ctx, cancel := context.WithTimeout(ctx, 3*askTime)
	defer cancel()
	c := redlock.Connect(n, 1, askTime)
	defer c.Close()
	for _, command := range commands {
		if last, err = c.Do(ctx, command...).Result(); err != nil {
			return nil, withoutPasswords(err)
		}
	}
	return last, nil
}

// password matches the rule of an ACL user that sets or removes a password, or its hash.
var password = regexp.MustCompile("[#><!][^\\s'`,]+")

// withoutPasswords hides passwords in an error: some servers repeat the words of a command that they refuse.
func withoutPasswords(err error) error {
	if text := err.Error(); password.MatchString(text) {
		return errors.New(password.ReplaceAllString(text, "(hidden)"))
	}
	return err
}
