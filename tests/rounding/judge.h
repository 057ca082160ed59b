// Compares the library's scalar conversion with the oracle, input by input.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "numsim/formats/format_table.h"
#include "numsim/rounding/encode.h"
#include "tests/reference/oracle.h"

namespace numsim {

// One format under several settings. Reports the first disagreements in full and then the number
// of all of them.
class EncodeJudge {
 public:
  EncodeJudge(const oracle::Format& format, const std::vector<oracle::Setting>& settings);
  ~EncodeJudge();
  EncodeJudge(const EncodeJudge&) = delete;
  EncodeJudge& operator=(const EncodeJudge&) = delete;

  const oracle::Grid& grid() const { return grid_; }

  // `bits` with both signs under every setting.
  void CheckF32(uint32_t bits);
  void CheckF64(uint64_t bits);
  // One signed input under the setting of that index.
  void CheckOneF32(uint32_t bits, size_t setting);
  void CheckOneF64(uint64_t bits, size_t setting);

  size_t settings() const { return cases_.size(); }

 private:
  struct Case {
    oracle::Setting setting;
    EncodePlan plan;
  };

  void CheckSignedF32(uint32_t bits);
  void CheckSignedF64(uint64_t bits);
  oracle::Place PlaceOf(const oracle::Real& x) const;
  void Compare(const Case& c,
               const oracle::Real& x,
               const oracle::Place& place,
               uint32_t random,
               uint32_t got,
               const char* source,
               uint64_t bits);

  oracle::Grid grid_;
  std::vector<Case> cases_;
  uint64_t disagreements_ = 0;
};

}  // namespace numsim
