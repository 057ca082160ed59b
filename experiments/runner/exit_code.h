// Exit codes of the program that other programs act on.
#pragma once

namespace numsim::experiments {

// A signal stopped the command, and --resume continues it: EX_TEMPFAIL of sysexits.h, "try again". No
// other end of the program has it.
inline constexpr int kStoppedBySignal = 75;

// `merge` of --until-decided: the results do not decide; the next look needs further trials.
inline constexpr int kNextLook = 3;

}  // namespace numsim::experiments
