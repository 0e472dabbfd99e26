package record

// LevelLife is the feature level of schedules, retention, limits, groups and
// batches of tasks: below it Apply does nothing of that.
const LevelLife = 2

// LevelSight is the feature level of the trail, schedules of their own and
// actions on many tasks: below it Apply keeps no trail.
const LevelSight = 3

// LevelSteps is the feature level of parents with steps and of their
// finalization.
const LevelSteps = 4

// LevelActs is the feature level at which the trail tells of operators' acts that
// change nothing in the state, and who did what, and at which a restore goes through
// the log, and that of join tokens and the page's secret. From it on a task that would
// expire before its delay is over is refused.
const LevelActs = 5

// LevelRepeats is the feature level from which a parent that was retried remembers the
// token of its end, by which a repeat of that retry is known.
const LevelRepeats = 6

// LevelAnswers is the feature level from which the log knows which answer about a claim
// was the latest: a release of claims whose answer could not be written ends none that
// a later one told of.
const LevelAnswers = 7

// LevelPlaces is the feature level from which on places of the trail jump where a
// cluster begins and where a backup is restored.
const LevelPlaces = 7

// LevelZones is the feature level from which on a schedule remembers what the clocks show at
// the slot that it waits for, and newer data of its time zone move that slot.
const LevelZones = 7

// LevelAsked is the feature level from which on steps are not retried that the end of a claimed
// one, which was asked to stop, would cancel again.
const LevelAsked = 7

// LevelSlots is the feature level from which on a schedule that is set late does not go back to a
// slot that it has had a task of, by whichever plan.
const LevelSlots = 7

// FeatureLevel is the highest feature level that this binary knows. A new
// command type, or a field that changes what Apply does, raises it.
const FeatureLevel uint32 = 7
