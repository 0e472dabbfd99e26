package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/nodes"
)

const (
	// firstLevelTries bounds how often the first leader asks the voters for their levels,
	// at retryInterval, before it settles for firstLevel.
	firstLevelTries = 30
	// firstLevelTimeout bounds asking them once.
	firstLevelTimeout = 200 * time.Millisecond
)

// featureLevels raises the cluster's feature level, and says which one all members know.
type featureLevels struct{ *membership }

// startLevel sets the feature level and the server's defaults of a new cluster before
// anything is proposed: the highest level if every voter knows it, else firstLevel.
func (lv *featureLevels) startLevel(l *leadership) error {
	if lv.fsm.Level() > 0 {
		return nil
	}
	level := uint32(firstLevel)
	for range firstLevelTries {
		ctx, cancel := context.WithTimeout(l.ctx, firstLevelTimeout)
		known, _, err := lv.levelKnown(ctx)
		cancel()
		if err == nil {
			level = max(level, known)
			break
		}
		if !pause.For(l.ctx, retryInterval) {
			return context.Cause(l.ctx)
		}
	}
	return l.propose(command.SetLevel{Level: level, Defaults: fsm.FirstDefaults(), Place: fsm.FirstPlace(time.Now().UnixMilli())})
}

// upgrade proposes the highest level that every member knows. See Node.Upgrade.
func (lv *featureLevels) upgrade(ctx context.Context, by string) (level uint32, err error) {
	if _, err := lv.serving(); err != nil {
		return 0, err
	}
	unlock, err := lv.lockMembers(ctx)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", nodes.ErrOverloaded, err)
	}
	defer unlock() // an older node could join meanwhile
	known, older, err := lv.levelKnown(ctx)
	if err != nil {
		return 0, &nodes.MembershipRefused{
			Reason: fmt.Sprintf("Not every member says which feature level it knows: %v", err),
			Advice: "Bring it back first, or remove it: a node that does not know the level would stop",
		}
	}
	if has := lv.fsm.Level(); known <= has {
		if len(older) > 0 {
			return 0, &nodes.MembershipRefused{
				Reason: fmt.Sprintf("The cluster is at feature level %d, and %s knows no more", has, strings.Join(older, ", ")),
				Advice: "Run the newer version on every node first; nothing was changed",
			}
		}
		return has, nil
	}
	cmd := command.SetLevel{Level: known, By: by}
	if _, err := lv.batcher.Propose(ctx, cmd); err != nil {
		return 0, err
	}
	lv.logger.Info("feature level raised", "feature_level", known)
	return lv.fsm.Level(), nil
}

// levelKnown returns the highest feature level that all members know, and the members that
// know less than this node. Voters are asked; for other members that do not answer, their
// record counts.
func (lv *featureLevels) levelKnown(ctx context.Context) (level uint32, older []string, err error) {
	level = fsm.FeatureLevel()
	servers := lv.servers()
	statuses, errs := lv.askStatuses(ctx, servers, statusQuestion{})
	var silent []string
	for i, s := range servers {
		record := statuses[i].Record
		if errs[i] != nil {
			lv.fsm.Read(func(m *fsm.Machine) { record, _ = m.Node(string(s.ID)) })
			if s.Suffrage == raft.Voter || record.Level == 0 {
				silent = append(silent, fmt.Sprintf("%s does not answer: %v", nameOf(s, record), errs[i]))
				continue
			}
		}
		level = min(level, record.Level)
		if record.Level < fsm.FeatureLevel() {
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
func (lv *featureLevels) noteLevels(ctx context.Context) {
	for ok := true; ok; {
		ok = pause.For(ctx, pause.Beat(levelNoteInterval))
		if err := lv.dir.SetLevel(lv.fsm.Level()); err != nil {
			lv.logger.Warn("the data folder's format is behind the feature level, trying again", "error", err)
		}
	}
}
