// The experiment `noise-floor`: how far a change of one weight by one ulp takes a training, beside changes
// of the arithmetic. It gives the margins of equivalence their scale.
#pragma once

#include <string>
#include <string_view>

#include "experiments/study/study.h"

namespace numsim::experiments {

study::Study NoiseFloorStudy();
Experiment NoiseFloor();

namespace noise_floor {

// Returns the kind of a change: "ulp@150" of "ulp@150/7", and the name itself of any other.
std::string KindOf(const std::string& change);

// Returns the least margin with which an equivalence test at 5 % on paired differences of so many seeds
// says "matches" with a probability of 0.8, if the differences have mean 0 and this standard deviation.
double CarriedMargin(double deviation, int seeds);

}  // namespace noise_floor
}  // namespace numsim::experiments
