#include "numsim/gemm/recorded_plan.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "numsim/base/error.h"
#include "numsim/base/require.h"
#include "numsim/formats/format_table.h"
#include "numsim/formats/named_formats.h"

namespace numsim {
namespace {

constexpr FormatSpec kE4m3fn = NamedFormat("e4m3fn");
constexpr size_t kCells = 12;  // six kinds, each for 1 and for 32 MiB

constexpr char kTable[] =
#include "numsim/gemm/internal/recorded_splits.inc"
    ;

struct PlanRow {
  ProductShape shape;
  std::array<size_t, kCells> parts;  // 0: not recorded
};

// Takes numbers and single characters off the front of a text.
class PlanReader {
 public:
  explicit PlanReader(std::string_view text) : text_(text) {}
  bool empty() const { return text_.empty(); }
  char Character() {
    const char first = text_.front();
    text_.remove_prefix(1);
    return first;
  }
  size_t Number() {
    size_t number = 0;
    const auto end = std::from_chars(text_.data(), text_.data() + text_.size(), number).ptr;
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    return number;
  }

 private:
  std::string_view text_;
};

// The place of a character in a-z, A-Z, 0-9.
size_t PlaceInAlphabet(char letter) {
  if (letter >= 'a') return static_cast<size_t>(letter - 'a');
  if (letter >= 'A') return static_cast<size_t>(letter - 'A') + 26;
  return static_cast<size_t>(letter - '0') + 52;
}

// The table that recorded_splits.inc holds; tests/tools/cublaslt/embedded.py describes it.
std::vector<PlanRow> ReadPlanRows() {
  PlanReader reader(std::string_view(kTable, sizeof kTable - 1));
  std::vector<size_t> numbers;
  do numbers.push_back(reader.Number());
  while (reader.Character() != '\n');
  std::vector<PlanRow> rows;
  while (!reader.empty()) {
    PlanRow row{};
    row.shape.m = reader.Number();
    reader.Character();
    row.shape.n = reader.Number();
    while (reader.Character() != '\n') {
      row.shape.k = reader.Number();
      reader.Character();  // the colon
      for (size_t& parts : row.parts) {
        const char letter = reader.Character();
        parts = letter == '-' ? 0 : numbers.at(PlaceInAlphabet(letter));
      }
      rows.push_back(row);
    }
  }
  return rows;
}

const std::vector<PlanRow>& PlanRows() {
  static const std::vector<PlanRow> rows = ReadPlanRows();
  return rows;
}

// The place of a recorded kind among the cells.
size_t CellOf(const RecordedPlans& plans) {
  CheckRecorded(plans);
  size_t kind = plans.operands == kBf16 ? 4 : 5;
  if (plans.operands == kE4m3fn) {
    kind = (plans.fast_accumulation ? 2 : 0) + (plans.results == kFp32 ? 1 : 0);
  }
  return 2 * kind + (plans.workspace_mib == 32 ? 1 : 0);
}

double PlanDistance(const ProductShape& x, const ProductShape& y) {
  const auto apart = [](size_t a, size_t b) {
    return std::abs(std::log(static_cast<double>(a) / static_cast<double>(b)));
  };
  return apart(x.m, y.m) + apart(x.n, y.n) + apart(x.k, y.k);
}

}  // namespace

void CheckRecorded(const RecordedPlans& plans) {
  const bool fp8 = plans.operands == kE4m3fn;
  const FormatSpec own = fp8 ? kBf16 : plans.operands;
  NUMSIM_REQUIRE(fp8 || plans.operands == kBf16 || plans.operands == kFp16,
                 "recorded plans: operands of {}, expected e4m3fn, bf16 or fp16",
                 ToString(plans.operands));
  NUMSIM_REQUIRE(plans.results == kFp32 || plans.results == own,
                 "recorded plans: results of {}, expected {} or fp32 for operands of {}",
                 ToString(plans.results),
                 ToString(own),
                 ToString(plans.operands));
  NUMSIM_REQUIRE(fp8 || !plans.fast_accumulation,
                 "recorded plans: fast accumulation is for operands of e4m3fn, not of {}",
                 ToString(plans.operands));
  NUMSIM_REQUIRE(plans.workspace_mib == 1 || plans.workspace_mib == 32,
                 "recorded plans: a workspace of {} MiB, expected 1 or 32",
                 plans.workspace_mib);
}

std::string_view AccumulationModeOf(const RecordedPlans& plans) {
  CheckRecorded(plans);
  if (plans.operands == kE4m3fn) return plans.fast_accumulation ? "hopper-fp8-fast" : "hopper-fp8";
  return plans.operands == kBf16 ? "hopper-bf16" : "hopper-fp16";
}

std::optional<size_t> RecordedParts(const RecordedPlans& plans, const ProductShape& shape) {
  const size_t cell = CellOf(plans);
  for (const PlanRow& row : PlanRows()) {
    if (row.shape == shape && row.parts[cell] != 0) return row.parts[cell];
  }
  return std::nullopt;
}

std::vector<RecordedShape> NearestRecorded(const RecordedPlans& plans,
                                           const ProductShape& shape,
                                           size_t count) {
  NUMSIM_REQUIRE(shape.m != 0 && shape.n != 0 && shape.k != 0,
                 "recorded plans: a shape of {} x {} x {}, expected no zero",
                 shape.m,
                 shape.n,
                 shape.k);
  const size_t cell = CellOf(plans);
  std::vector<std::pair<double, const PlanRow*>> found;
  for (const PlanRow& row : PlanRows()) {
    if (row.parts[cell] != 0) found.emplace_back(PlanDistance(row.shape, shape), &row);
  }
  std::ranges::sort(found);  // rows lie in ascending order of m, n, k
  std::vector<RecordedShape> nearest;
  for (size_t i = 0; i < std::min(count, found.size()); ++i) {
    nearest.push_back({found[i].second->shape, found[i].second->parts[cell]});
  }
  return nearest;
}

}  // namespace numsim
