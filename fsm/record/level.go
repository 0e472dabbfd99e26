package record

// LevelLife is the feature level of scheduled tasks, retention, limits, groups and batches of tasks.
// Below it, Apply ignores them.
const LevelLife = 2

// LevelSight is the feature level of the trail, of schedules that submit tasks, and of actions on
// many tasks. Below it, Apply keeps no trail.
const LevelSight = 3

// LevelSteps is the feature level of parents with steps and their finalization.
const LevelSteps = 4

// LevelActs is the feature level at which the trail records who did what and operators' actions
// that change no state, restores go through the log, and join tokens and the page's secret exist.
// From it on, a task that would expire before its delay is over is refused.
const LevelActs = 5

// LevelRepeats is the feature level from which a retried parent keeps the token of its end, so
// that a repeat of that retry is recognized.
const LevelRepeats = 6

// LevelAnswers is the feature level from which the log records the latest answer about a claim,
// so that releasing claims whose answer could not be written ends none that a later answer
// reported.
const LevelAnswers = 7

// LevelPlaces is the feature level from which trail places jump when a cluster begins and when a
// backup is restored.
const LevelPlaces = 7

// LevelZones is the feature level from which a schedule remembers the wall clock time of its next
// slot, so that newer time zone data can move the slot.
const LevelZones = 7

// LevelAsked is the feature level from which a retry leaves out steps that would be cancelled
// again at the end of a claimed step which was asked to stop.
const LevelAsked = 7

// LevelSlots is the feature level from which a schedule that is set late does not return to a
// slot for which it has submitted a task, even under another plan.
const LevelSlots = 7

// FeatureLevel is the highest feature level that this binary knows. A new command type, or a
// field that changes what Apply does, raises it.
const FeatureLevel uint32 = 7
