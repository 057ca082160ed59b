// `numsim oracle diff`: lists every input on which two conversions differ.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>

#include "apps/format_text.h"
#include "apps/oracle_command.h"
#include "numsim/base/error.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/io/csv.h"
#include "numsim/profiles/cause.h"
#include "numsim/profiles/diff.h"

namespace numsim::apps {
namespace {

struct DiffOptions {
  std::string a, b, from = "float32", to, to_b, random = "0", csv;
  uint64_t limit = 0;
  bool brute_force = false, fail_on_difference = false;
};

uint32_t ParseWord(const std::string& text) {
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  const char* begin = text.data() + (hex ? 2 : 0);
  const char* end = text.data() + text.size();
  uint32_t word = 0;
  const auto [stop, status] = std::from_chars(begin, end, word, hex ? 16 : 10);
  if (begin == end || stop != end || status != std::errc()) {
    throw Error::Format("--random '{}' is not a 32-bit word, e.g. 0x89ABCDEF", text);
  }
  return word;
}

int SourceDigits(SourceType type) { return type == SourceType::kFloat32 ? 8 : 16; }

std::string SourceBitsText(SourceType type, uint64_t bits) {
  return fmt::format("0x{:0{}X}", bits, SourceDigits(type));
}

// Returns the shortest text that parses to the same number.
std::string SourceValueText(SourceType type, uint64_t bits) {
  if (type == SourceType::kFloat32) {
    return ValueText(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  const double value = std::bit_cast<double>(bits);
  if (std::isnan(value)) return std::signbit(value) ? "-nan" : "nan";
  return fmt::format("{}", value);
}

// Returns the value of the code as the implementation interprets it.
std::string MeaningText(const ProfileConversion& conversion, uint32_t code) {
  return ValueText(Decode(conversion.meaning(), code));
}

uint64_t Middle(const DifferingInterval& interval) {
  return interval.first + (interval.Count() - 1) / 2;
}

void PrintSide(
    char letter, const ProfileConversion& side, const Format& to, uint32_t word, DiffBy by) {
  const ProfileInfo& profile = side.profile();
  fmt::print("{}  {}: {}; {}\n", letter, side.name(), ToString(profile.evidence), profile.version);
  fmt::print("   {}\n", profile.note);
  if (side.meaning() != side.format()) {
    fmt::print("   its codes are those of {}, not of {}{}\n",
               ToString(side.meaning()),
               to.name,
               by == DiffBy::kCode ? ": codes are compared as bit patterns" : "");
  }
  if (side.random_bits() > 0) {
    fmt::print("   of the random word 0x{:08X} its first element takes the {} bits 0x{:X}\n",
               word,
               side.random_bits(),
               side.RandomOfWord(word));
  }
}

// The intervals of one cause.
struct Group {
  DifferenceCause cause;
  std::vector<const DifferingInterval*> intervals;

  uint64_t Inputs() const {
    uint64_t inputs = 0;
    for (const DifferingInterval* interval : intervals) inputs += interval->Count();
    return inputs;
  }
};

// Returns the causes in the order in which they first occur.
std::vector<Group> GroupByCause(const ProfileConversion& a,
                                const ProfileConversion& b,
                                const Difference& difference) {
  std::vector<Group> groups;
  for (const DifferingInterval& interval : difference.intervals) {
    const DifferenceCause cause = CauseOf(interval, a, b);
    auto group = std::find_if(
        groups.begin(), groups.end(), [&](const Group& g) { return g.cause == cause; });
    if (group == groups.end()) group = groups.insert(groups.end(), Group{cause, {}});
    group->intervals.push_back(&interval);
  }
  return groups;
}

// Prints rows of the table of intervals for sources of one type.
class IntervalRows {
 public:
  IntervalRows(const ProfileConversion& a, const ProfileConversion& b)
      : a_(a), b_(b), from_(a.source_type()) {}

  void PrintHeading() const {
    PrintCells({"first", "last", "from", "to", "count", "a", "b", "example"});
  }
  void Print(const DifferingInterval& run) const {
    PrintCells({SourceBitsText(from_, run.first),
                SourceBitsText(from_, run.last),
                SourceValueText(from_, run.first),
                SourceValueText(from_, run.last),
                std::to_string(run.Count()),
                CodeText(a_.format(), run.code_a) + " " + MeaningText(a_, run.code_a),
                CodeText(b_.format(), run.code_b) + " " + MeaningText(b_, run.code_b),
                SourceValueText(from_, Middle(run))});
  }

 private:
  void PrintCells(const std::array<std::string, 8>& cells) const {
    const int width = SourceDigits(from_) + 2;
    fmt::print("{:<{}}  {:<{}}  {:<15}  {:<15}  {:>10}  {:<18}  {:<18}  {}\n",
               cells[0],
               width,
               cells[1],
               width,
               cells[2],
               cells[3],
               cells[4],
               cells[5],
               cells[6],
               cells[7]);
  }

  const ProfileConversion& a_;
  const ProfileConversion& b_;
  SourceType from_;
};

// Prints up to `limit` intervals below the cause that they share.
void PrintIntervals(const ProfileConversion& a,
                    const ProfileConversion& b,
                    const Difference& difference,
                    size_t limit) {
  if (difference.intervals.empty()) return;
  const IntervalRows rows(a, b);
  rows.PrintHeading();
  size_t printed = 0;
  for (const Group& group : GroupByCause(a, b, difference)) {
    const size_t count = group.intervals.size();
    fmt::print("- {} ({} interval{}, {} input{})\n",
               Explanation(group.cause, a.name(), b.name()),
               count,
               count == 1 ? "" : "s",
               group.Inputs(),
               group.Inputs() == 1 ? "" : "s");
    for (size_t i = 0; i < count && printed < limit; ++i, ++printed) {
      rows.Print(*group.intervals[i]);
    }
  }
  if (limit < difference.intervals.size()) {
    fmt::print("... and {} more intervals\n", difference.intervals.size() - limit);
  }
}

Table IntervalTable(const ProfileConversion& a,
                    const ProfileConversion& b,
                    const Difference& difference) {
  const SourceType from = a.source_type();
  Table table;
  table.columns = {"first_bits",
                   "last_bits",
                   "first",
                   "last",
                   "count",
                   "code_a",
                   "value_a",
                   "code_b",
                   "value_b",
                   "example_bits",
                   "example",
                   "cause"};
  for (const DifferingInterval& run : difference.intervals) {
    table.rows.push_back({SourceBitsText(from, run.first),
                          SourceBitsText(from, run.last),
                          SourceValueText(from, run.first),
                          SourceValueText(from, run.last),
                          run.Count(),
                          CodeText(a.format(), run.code_a),
                          MeaningText(a, run.code_a),
                          CodeText(b.format(), run.code_b),
                          MeaningText(b, run.code_b),
                          SourceBitsText(from, Middle(run)),
                          SourceValueText(from, Middle(run)),
                          std::string(ToString(CauseOf(run, a, b)))});
  }
  return table;
}

int DiffProfiles(const DiffOptions& options) {
  const SourceType from = ParseSourceType(options.from);
  const Format to = ParseFormat(options.to);
  const Format to_b = options.to_b.empty() ? to : ParseFormat(options.to_b);
  const DiffBy by = options.to_b.empty() ? DiffBy::kCode : DiffBy::kValue;
  const uint32_t word = ParseWord(options.random);
  const ProfileConversion a(CompleteProfileName(options.a), from, to);
  const ProfileConversion b(CompleteProfileName(options.b), from, to_b);
  const Difference difference =
      options.brute_force ? DiffByBruteForce(a, b, word, by) : Diff(a, b, word, by);
  if (!options.csv.empty()) WriteCsv(options.csv, IntervalTable(a, b, difference));
  if (by == DiffBy::kCode) {
    fmt::print("{} to {}\n", options.from, to.name);
  } else {
    fmt::print("{} to {} (a) and to {} (b), compared by value: all NaNs are equal, and -0 is 0\n",
               options.from,
               to.name,
               to_b.name);
  }
  PrintSide('a', a, to, word, by);
  PrintSide('b', b, to_b, word, by);
  const size_t all = difference.intervals.size();
  PrintIntervals(a, b, difference, options.limit > 0 ? options.limit : all);
  fmt::print("{} intervals; {} of 2^{} inputs differ ({} not counting NaN inputs)\n",
             all,
             difference.differing,
             from == SourceType::kFloat32 ? 32 : 64,
             difference.differing - difference.differing_nan);
  return options.fail_on_difference && all > 0 ? 1 : 0;
}

}  // namespace

void AddOracleDiffCommand(Program& program, CLI::App* oracle) {
  auto options = std::make_shared<DiffOptions>();
  CLI::App* sub = oracle->add_subcommand(
      "diff", "List every interval of inputs on which two profiles differ: complete, not sampled");
  const std::string profile =
      "Profile (see `oracle profiles`), its beginning (`cuda` for cuda-13), or "
      "rule:ROUNDING,OVERFLOW";
  sub->add_option("A", options->a, profile)->required();
  sub->add_option("B", options->b, profile)->required();
  sub->add_option("--from", options->from, "Source type: float32 or float64")
      ->capture_default_str();
  sub->add_option("--to", options->to, "Target format")->required();
  sub->add_option("--to-b",
                  options->to_b,
                  "Target format of B; compares values instead of codes (default: --to, codes)")
      ->check(NotEmpty());
  sub->add_option("--random", options->random, "32-bit random word for stochastic profiles")
      ->capture_default_str();
  sub->add_option("--csv", options->csv, "Also write all intervals to this CSV file")
      ->check(NotEmpty());
  sub->add_option("--limit", options->limit, "Print at most this many intervals (default: all)")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40));
  sub->add_flag(
      "--brute-force", options->brute_force, "Compare all 2^32 float32 inputs one by one instead");
  sub->add_flag("--fail-on-difference",
                options->fail_on_difference,
                "Exit with code 1 if the profiles differ (default: exit code 0)");
  Example(sub, "numsim oracle diff cuda-13 hip-host --from float32 --to e4m3fn");
  Choose(program, sub, [options] { return DiffProfiles(*options); });
}

}  // namespace numsim::apps
