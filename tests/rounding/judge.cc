#include "tests/rounding/judge.h"

#include <fmt/format.h>

#include "tests/reference/inputs.h"
#include "tests/support/vocabulary.h"

namespace numsim {
namespace {

using oracle::Place;
using oracle::Real;

constexpr uint64_t kReportedInFull = 4;

// The random word of an input: any fixed function of its bits will do.
uint32_t WordFor(uint64_t bits) { return oracle::TestRandom(bits).Next32(); }

}  // namespace

EncodeJudge::EncodeJudge(const oracle::Format& format, const std::vector<oracle::Setting>& settings)
    : grid_(format) {
  const FormatSpec spec = ParseFormat(format.name).spec;
  for (const oracle::Setting& setting : settings) {
    cases_.push_back(
        {setting, MakeEncodePlan(spec, RoundingOf(setting), ToLibrary(setting.policy))});
  }
}

EncodeJudge::~EncodeJudge() {
  if (disagreements_ > kReportedInFull) {
    ADD_FAILURE() << grid_.format().name << ": " << disagreements_ << " disagreements in all";
  }
}

Place EncodeJudge::PlaceOf(const Real& x) const {
  return x.kind == Real::Kind::kFinite ? grid_.Locate(x.magnitude) : Place{};
}

void EncodeJudge::Compare(const Case& c,
                          const Real& x,
                          const Place& place,
                          uint32_t random,
                          uint32_t got,
                          const char* source,
                          uint64_t bits) {
  const uint32_t expected = oracle::EncodeAt(grid_, x, place, c.setting, random);
  if (got == expected) return;
  if (++disagreements_ > kReportedInFull) return;
  ADD_FAILURE() << fmt::format(
      "{} {}: {} 0x{:x} ({}{:a}, word 0x{:08x}): library 0x{:x}, oracle 0x{:x}",
      grid_.format().name,
      Describe(c.setting),
      source,
      bits,
      x.negative ? "-" : "+",
      x.magnitude,
      random,
      got,
      expected);
}

void EncodeJudge::CheckSignedF32(uint32_t bits) {
  const Real x = oracle::FromFloat32(bits);
  const Place place = PlaceOf(x);
  const uint32_t random = WordFor(bits);
  for (const Case& c : cases_) {
    Compare(c, x, place, random, EncodeF32(c.plan, bits, random), "float32", bits);
  }
}

void EncodeJudge::CheckSignedF64(uint64_t bits) {
  const Real x = oracle::FromFloat64(bits);
  const Place place = PlaceOf(x);
  const uint32_t random = WordFor(bits);
  for (const Case& c : cases_) {
    Compare(c, x, place, random, EncodeF64(c.plan, bits, random), "float64", bits);
  }
}

void EncodeJudge::CheckF32(uint32_t bits) {
  CheckSignedF32(bits);
  CheckSignedF32(bits ^ 0x80000000u);
}

void EncodeJudge::CheckF64(uint64_t bits) {
  CheckSignedF64(bits);
  CheckSignedF64(bits ^ 0x8000000000000000u);
}

void EncodeJudge::CheckOneF32(uint32_t bits, size_t setting) {
  const Real x = oracle::FromFloat32(bits);
  const uint32_t random = WordFor(bits);
  const Case& c = cases_[setting];
  Compare(c, x, PlaceOf(x), random, EncodeF32(c.plan, bits, random), "float32", bits);
}

void EncodeJudge::CheckOneF64(uint64_t bits, size_t setting) {
  const Real x = oracle::FromFloat64(bits);
  const uint32_t random = WordFor(bits);
  const Case& c = cases_[setting];
  Compare(c, x, PlaceOf(x), random, EncodeF64(c.plan, bits, random), "float64", bits);
}

}  // namespace numsim
