// Counting the random words for which a stochastic conversion rounds away from zero.
#pragma once

#include <cstdint>
#include <vector>

#include "numsim/profiles/profile.h"
#include "tests/reference/oracle.h"

namespace numsim {

enum class Count {
  kEveryWord,   // tries all 2^N words
  kBySearching  // finds the first word of the other code, trusting that there are two runs of words
};

// Words of all 2^N for which the magnitude code is `away` and not `toward`. Fails the test when a
// word that was tried gives a third code.
uint64_t CountWords(const ProfileConversion& conversion,
                    uint32_t bits,
                    uint32_t toward,
                    uint32_t away,
                    Count count);

// Checks that x and -x round away with P = floor(nu 2^N) / 2^N, where nu is the fraction that is
// discarded. Requires 0 < x <= the largest value.
void ExpectVariantA(const ProfileConversion& conversion,
                    const oracle::Grid& grid,
                    float x,
                    Count count);

// ExpectVariantA for one number in every binade, with every word. `target` is a format that the
// oracle also knows, and `profile` converts float32 to it.
void ExpectVariantAInEveryBinade(const char* profile, const char* target);

// A float32 number in every `step`-th binade from 26 below the smallest value to the largest, for
// each of the factors.
std::vector<float> InBinades(const oracle::Grid& grid,
                             const std::vector<double>& factors,
                             int step);

}  // namespace numsim
