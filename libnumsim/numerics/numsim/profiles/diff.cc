#include "numsim/profiles/diff.h"

#include <algorithm>
#include <cmath>

#include "numsim/base/error.h"
#include "numsim/base/parallel.h"
#include "numsim/formats/decode.h"
#include "numsim/profiles/internal/rules.h"

namespace numsim {
namespace {

constexpr int kMaxBits = 20;  // wider targets have too many codes to list

// One of the two conversions, with fixed random bits.
struct Side {
  const ProfileConversion& conversion;
  uint32_t random;

  uint32_t Encode(uint64_t bits) const { return conversion.Encode(bits, random); }
};

Side Drawn(const ProfileConversion& conversion, uint32_t word) {
  return {conversion, conversion.RandomOfWord(word)};
}

void CheckComparable(const ProfileConversion& a, const ProfileConversion& b, DiffBy by) {
  if (a.source_type() != b.source_type()) {
    throw Error::Format("'{}' converts from {}, '{}' from {}",
                        a.name(),
                        ToString(a.source_type()),
                        b.name(),
                        ToString(b.source_type()));
  }
  if (by == DiffBy::kCode && a.format().Bits() != b.format().Bits()) {
    throw Error::Format("the targets have {} and {} bits", a.format().Bits(), b.format().Bits());
  }
  const int bits = std::max(a.format().Bits(), b.format().Bits());
  if (bits > kMaxBits) {
    throw Error::Format(
        "differences are listed for targets of up to {} bits, not {}", kMaxBits, bits);
  }
}

// Tells whether two codes are different results.
class Comparison {
 public:
  Comparison(const Side& a, const Side& b, DiffBy by)
      : a_(a.conversion.meaning()), b_(b.conversion.meaning()), by_(by) {}

  bool Differ(uint32_t code_a, uint32_t code_b) const {
    if (by_ == DiffBy::kCode) return code_a != code_b;
    const float x = Decode(a_, code_a), y = Decode(b_, code_b);
    return x != y && !(std::isnan(x) && std::isnan(y));
  }

 private:
  FormatSpec a_, b_;
  DiffBy by_;
};

// Appends a run to ascending runs of the same sign. Merges it with the previous run if that adjoins
// it and has the same codes. `first_nan` has the bits of the first NaN of that sign.
void Append(std::vector<DifferingInterval>& runs,
            const DifferingInterval& run,
            uint64_t first_nan) {
  if (!runs.empty()) {
    DifferingInterval& before = runs.back();
    const bool same = before.code_a == run.code_a && before.code_b == run.code_b;
    if (same && before.last + 1 == run.first && run.first != first_nan) {
      before.last = run.last;
      return;
    }
  }
  runs.push_back(run);
}

// Returns the last magnitude of [x, end] with the code of x. Requires a conversion that is monotone
// there.
uint64_t LastOfCode(const Side& side, uint64_t sign, uint64_t x, uint64_t end, uint32_t code) {
  if (side.Encode(sign | end) == code) return end;
  uint64_t low = x, high = end;  // low has the code, high does not
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    (side.Encode(sign | middle) == code ? low : high) = middle;
  }
  return low;
}

// Appends the differing runs of the magnitudes [first, end] of one sign. Requires both conversions
// to be monotone there.
void AppendRange(const Side& a,
                 const Side& b,
                 const Comparison& comparison,
                 uint64_t sign,
                 uint64_t first,
                 uint64_t end,
                 uint64_t first_nan,
                 std::vector<DifferingInterval>& runs) {
  struct Run {
    uint32_t code = 0;
    uint64_t last = 0;
  } run_a, run_b;
  for (uint64_t x = first;;) {
    if (x == first || x > run_a.last) {
      run_a.code = a.Encode(sign | x);
      run_a.last = LastOfCode(a, sign, x, end, run_a.code);
    }
    if (x == first || x > run_b.last) {
      run_b.code = b.Encode(sign | x);
      run_b.last = LastOfCode(b, sign, x, end, run_b.code);
    }
    const uint64_t last = std::min(run_a.last, run_b.last);
    if (comparison.Differ(run_a.code, run_b.code)) {
      Append(runs, {sign | x, sign | last, run_a.code, run_b.code}, first_nan);
    }
    if (last == end) return;
    x = last + 1;
  }
}

std::vector<uint64_t> MergedRanges(const ProfileConversion& a, const ProfileConversion& b) {
  std::vector<uint64_t> merged = a.MonotoneRanges();
  const std::vector<uint64_t> others = b.MonotoneRanges();
  merged.insert(merged.end(), others.begin(), others.end());
  std::sort(merged.begin(), merged.end());
  merged.erase(std::unique(merged.begin(), merged.end()), merged.end());
  return merged;
}

constexpr uint64_t kPiece = uint64_t{1} << 20;  // patterns per task; divides those of one sign
constexpr uint64_t kBatch = 4096;               // divides kPiece

// Append for runs of both signs. The first negative pattern follows the last positive one and
// always begins a new run.
void AppendPattern(std::vector<DifferingInterval>& runs, const DifferingInterval& run) {
  const SourceLayout& layout = kFloat32Layout;
  if (run.first == layout.sign_bit) {
    runs.push_back(run);
  } else {
    Append(runs, run, (run.first & layout.sign_bit) | (layout.infinity + 1));
  }
}

// Appends the differing runs of the kBatch patterns from `begin` on.
void AppendBatch(const Side& a,
                 const Side& b,
                 const Comparison& comparison,
                 uint64_t begin,
                 std::vector<DifferingInterval>& runs) {
  uint32_t codes_a[kBatch], codes_b[kBatch];
  a.conversion.EncodeRun(static_cast<uint32_t>(begin), a.random, codes_a);
  b.conversion.EncodeRun(static_cast<uint32_t>(begin), b.random, codes_b);
  for (uint64_t i = 0; i < kBatch; ++i) {
    if (!comparison.Differ(codes_a[i], codes_b[i])) continue;
    AppendPattern(runs, {begin + i, begin + i, codes_a[i], codes_b[i]});
  }
}

void Count(Difference& difference, const SourceLayout& layout) {
  for (const DifferingInterval& run : difference.intervals) {
    difference.differing += run.Count();
    const bool nan = (run.first & layout.MagnitudeMask()) > layout.infinity;
    if (nan) difference.differing_nan += run.Count();
  }
}

}  // namespace

Difference Diff(const ProfileConversion& a, const ProfileConversion& b, uint32_t word, DiffBy by) {
  CheckComparable(a, b, by);
  const SourceLayout& layout = LayoutOf(a.source_type());
  const Side side_a = Drawn(a, word), side_b = Drawn(b, word);
  const Comparison comparison(side_a, side_b, by);
  const std::vector<uint64_t> starts = MergedRanges(a, b);
  Difference difference;
  for (const uint64_t sign : {uint64_t{0}, layout.sign_bit}) {
    const uint64_t first_nan = sign | (layout.infinity + 1);
    std::vector<DifferingInterval> runs;
    for (size_t i = 0; i < starts.size(); ++i) {
      const bool final = i + 1 == starts.size();
      const uint64_t end = final ? layout.MagnitudeMask() : starts[i + 1] - 1;
      AppendRange(side_a, side_b, comparison, sign, starts[i], end, first_nan, runs);
    }
    difference.intervals.insert(difference.intervals.end(), runs.begin(), runs.end());
  }
  Count(difference, layout);
  return difference;
}

Difference DiffByBruteForce(const ProfileConversion& a,
                            const ProfileConversion& b,
                            uint32_t word,
                            DiffBy by) {
  CheckComparable(a, b, by);
  if (a.source_type() != SourceType::kFloat32) {
    throw Error("only the float32 patterns can all be tried");
  }
  constexpr size_t kPieces = (uint64_t{1} << 32) / kPiece;
  const Side side_a = Drawn(a, word), side_b = Drawn(b, word);
  const Comparison comparison(side_a, side_b, by);
  std::vector<std::vector<DifferingInterval>> pieces(kPieces);
  ParallelTasks(kPieces, [&](size_t piece) {
    for (uint64_t begin = piece * kPiece; begin < (piece + 1) * kPiece; begin += kBatch) {
      AppendBatch(side_a, side_b, comparison, begin, pieces[piece]);
    }
  });
  Difference difference;
  for (const std::vector<DifferingInterval>& piece : pieces) {
    for (const DifferingInterval& run : piece) AppendPattern(difference.intervals, run);
  }
  Count(difference, kFloat32Layout);
  return difference;
}

}  // namespace numsim
