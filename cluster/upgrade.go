package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/duty"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/nodes"
)

const (
	// firstLevel is the feature level of a new cluster if not all voters report a higher
	// one. An operator decides about higher ones.
	firstLevel = 1
	// firstLevelTries bounds how often the first leader asks the voters for their levels,
	// at duty.RetryInterval, before it settles for firstLevel.
	firstLevelTries = 30
	// firstLevelTimeout bounds asking them once.
	firstLevelTimeout = 200 * time.Millisecond
)

// checkLevel refuses a command that some node of the cluster may not know, because that
// node would stop at it.
func (n *Node) checkLevel(cmd command.Command) error {
	needs, has := command.LevelOf(cmd), n.fsm.Level()
	if needs <= max(has, firstLevel) {
		return nil
	}
	return fmt.Errorf("%w: it needs level %d, the cluster is at %d", nodes.ErrLevel, needs, has)
}

// startLevel sets the feature level and the server's defaults of a new cluster before
// anything is proposed: the highest level if every voter knows it, else firstLevel.
func (l *leadership) startLevel() error {
	n := l.node
	if n.fsm.Level() > 0 {
		return nil
	}
	level := uint32(firstLevel)
	for range firstLevelTries {
		ctx, cancel := context.WithTimeout(l.ctx, firstLevelTimeout)
		known, _, err := n.levelKnown(ctx)
		cancel()
		if err == nil {
			level = max(level, known)
			break
		}
		if !pause.For(l.ctx, duty.RetryInterval) {
			return context.Cause(l.ctx)
		}
	}
	return l.propose(command.SetLevel{Level: level, Defaults: fsm.FirstDefaults(level), Place: fsm.FirstPlace(level, time.Now().UnixMilli())})
}

// Upgrade raises the cluster's feature level to the highest that every member knows, and
// returns it; by names the operator for the trail. Older versions can no longer take part.
// Errors after which nothing has changed: *nodes.MembershipRefused if a voter cannot be
// asked, or a member knows no more than the current level, nodes.ErrNotLeader,
// nodes.ErrNoLeader, nodes.ErrOverloaded, nodes.ErrShuttingDown. nodes.ErrOutcomeUnknown if
// that is unknown.
func (n *Node) Upgrade(ctx context.Context, by string) (level uint32, err error) {
	if _, err := n.serving(); err != nil {
		return 0, err
	}
	unlock, err := n.lockMembers(ctx)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", nodes.ErrOverloaded, err)
	}
	defer unlock() // an older node could join meanwhile
	known, older, err := n.levelKnown(ctx)
	if err != nil {
		return 0, &nodes.MembershipRefused{
			Reason: fmt.Sprintf("Not every member says which feature level it knows: %v", err),
			Advice: "Bring it back first, or remove it: a node that does not know the level would stop",
		}
	}
	if has := n.fsm.Level(); known <= has {
		if len(older) > 0 {
			return 0, &nodes.MembershipRefused{
				Reason: fmt.Sprintf("The cluster is at feature level %d, and %s knows no more", has, strings.Join(older, ", ")),
				Advice: "Run the newer version on every node first; nothing was changed",
			}
		}
		return has, nil
	}
	cmd := command.SetLevel{Level: known, By: by, Place: fsm.FirstPlace(known, time.Now().UnixMilli())}
	if command.LevelOf(cmd) > known {
		cmd.By = ""
	}
	if _, err := n.batcher.Propose(ctx, cmd); err != nil {
		return 0, err
	}
	n.logger.Info("feature level raised", "feature_level", known)
	return n.fsm.Level(), nil
}

// levelKnown returns the highest feature level that all members know, and the members that
// know less than this node. Voters are asked; for other members that do not answer, their
// record counts.
func (n *Node) levelKnown(ctx context.Context) (level uint32, older []string, err error) {
	level = fsm.FeatureLevel
	servers := n.servers()
	statuses, errs := n.askStatuses(ctx, servers, statusQuestion{})
	var silent []string
	for i, s := range servers {
		record := statuses[i].Record
		if errs[i] != nil {
			n.fsm.Read(func(m *fsm.Machine) { record, _ = m.Node(string(s.ID)) })
			if s.Suffrage == raft.Voter || record.Level == 0 {
				silent = append(silent, fmt.Sprintf("%s does not answer: %v", nameOf(s, record), errs[i]))
				continue
			}
		}
		level = min(level, record.Level)
		if record.Level < fsm.FeatureLevel {
			older = append(older, nameOf(s, record))
		}
	}
	if len(silent) > 0 {
		slices.Sort(silent)
		return 0, nil, errors.New(strings.Join(silent, "; "))
	}
	slices.Sort(older)
	return level, older, nil
}

// nameOf returns a name for a member that may have no record yet.
func nameOf(s raft.Server, r fsm.NodeRecord) string {
	if r.NodeID != "" {
		return r.NodeID
	}
	return string(s.Address)
}

// levelNoteInterval is the interval at which a node checks whether its cluster's feature
// level has risen.
const levelNoteInterval = time.Second

// noteLevels keeps the data folder's format in step with the feature level, also once at
// the end. A binary that knows less then refuses the folder at once, instead of stopping
// later at an entry that it cannot apply.
func (n *Node) noteLevels(ctx context.Context) {
	for ok := true; ok; {
		ok = pause.For(ctx, pause.Beat(levelNoteInterval))
		if err := n.dir.SetLevel(n.fsm.Level()); err != nil {
			n.logger.Warn("the data folder's format is behind the feature level, trying again", "error", err)
		}
	}
}
