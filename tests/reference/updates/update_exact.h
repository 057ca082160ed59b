// Exact arithmetic and single roundings for the reference of update rules: everything is a big
// integer times a power of two until one of the functions below rounds it.
#pragma once

#include <cstdint>
#include <string_view>

#include "tests/reference/exact_number.h"
#include "tests/reference/oracle.h"

namespace update_reference {

using oracle::ExactNumber;

ExactNumber Exact(double x);
ExactNumber Sum(const ExactNumber& a, const ExactNumber& b);
ExactNumber Difference(const ExactNumber& a, const ExactNumber& b);
inline ExactNumber Product(const ExactNumber& a, const ExactNumber& b) {
  return oracle::ExactProduct(a, b);
}

// To nearest even; infinity beyond the range.
float ToF32(const ExactNumber& x);
double ToF64(const ExactNumber& x);

// The values of a format and the ways into it.
class Storage {
 public:
  // The name of a format of the oracle's list.
  explicit Storage(std::string_view format);

  const oracle::Grid& grid() const { return grid_; }
  float MaxFinite() const { return static_cast<float>(grid_.Value(grid_.end() - 1)); }
  // The values of the magnitude codes 0 .. end - 1, ascending.
  float Magnitude(int64_t position) const { return static_cast<float>(grid_.Value(position)); }
  float ValueOf(uint32_t code) const;

  uint32_t NearestCode(const ExactNumber& x, oracle::Policy policy) const;
  // To nearest even; saturating.
  float Nearest(const ExactNumber& x) const;
  // To nearest even; an overflow becomes what the format says.
  float NearestNonsaturating(const ExactNumber& x) const;
  // To nearest, ties away from zero; saturating.
  float NearestAway(const ExactNumber& x) const;
  // Stochastic by variant A, saturating.
  float Stochastic(const ExactNumber& x, int random_bits, uint32_t word) const;
  // How many words of that many bits round the magnitude of x away from zero.
  uint64_t WordsAway(const ExactNumber& x, int random_bits) const;

 private:
  oracle::Grid grid_;
};

// The storage of that name, built once.
const Storage& StorageOf(std::string_view format);

// The least power of two s with absmax <= 65504 s, from 2^-127 to 2^127; 1 for absmax 0.
float Fp16Scale(float absmax);

// The float32 that a bf16 weight and its remainder make up, and back.
float Join(float weight, uint16_t remainder);
struct Halves {
  float weight;
  uint16_t remainder;
};
Halves Split(float master);

}  // namespace update_reference
