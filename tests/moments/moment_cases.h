// Data and formats for the tests of stored moments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/moments/moment_store.h"
#include "tests/reference/moment_oracle.h"

namespace numsim::moment_test {

// Kinds of data: normal, squares (of normal draws), heavy-tailed, positive-tailed, zero,
// single-zero, negative-zeros, constant, two-values, near-constant, tiny, huge, wide (all of
// float32), powers, specials (NaN and infinities among others), nan, infinite.
std::vector<std::string> DataKinds();
// n values; the first of 2n are not those of n.
std::vector<float> MakeData(std::string_view kind, size_t n, uint64_t seed = 1);

// The formats that the tests go through, dynamic among them and fp32 left out; all texts of one of
// them with its scalings and roundings; all texts of all.
std::vector<std::string> TestedFormats();
std::vector<std::string> FormatTexts(std::string_view format);
std::vector<std::string> FormatTexts();

oracle::MomentRule OracleRule(const MomentFormat& format, bool is_signed);
// The random words that Store draws.
std::vector<uint32_t> Draws(const MomentFormat& format, RandomStream random, size_t n);

// Codes and scales out of MomentStore::Save. Requires another format than fp32.
struct Stored {
  std::vector<uint32_t> codes;
  std::vector<float> scales;
};
Stored ReadState(const MomentStore& store);

std::vector<float> LoadAll(const MomentStore& store);

// Whether the bits agree, NaN with any NaN.
bool SameBits(float x, float y);
// In units in the last place; 0 between two NaN.
int64_t UlpsBetween(float x, float y);

}  // namespace numsim::moment_test
