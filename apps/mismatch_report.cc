#include "apps/mismatch_report.h"

#include <fmt/format.h>

#include "apps/column_text.h"

namespace numsim::apps {
namespace {

constexpr size_t kMostInputsShown = 4;

void PrintValue(const std::string& name, const std::string& note, const std::string& value) {
  fmt::print("  {:<10}{:<10}{}\n", name, note, value);
}

// Prints the case as read, its inputs, and every wrong result with the expected one.
void Print(const Mismatch& mismatch,
           const char* place,
           const CaseColumns& columns,
           const Judge& judge) {
  fmt::print("{} {}: {}\n", place, mismatch.place, RowLine(columns.all, mismatch.row));
  if (columns.inputs <= kMostInputsShown) {
    for (size_t i = 0; i < columns.inputs; ++i) {
      PrintValue(columns.all[i].name, "", ColumnText(columns.all[i], mismatch.row[i]));
    }
  }
  for (size_t i = 0; i < columns.results; ++i) {
    const Column& column = columns.all[columns.inputs + i];
    const uint64_t got = mismatch.row[columns.inputs + i];
    if (judge.Accepts(i, got, mismatch.expected[i])) continue;
    PrintValue(column.name, "got", ColumnText(column, got));
    PrintValue("", "expected", ColumnText(column, mismatch.expected[i]));
  }
  const bool flags = mismatch.row.size() > columns.WithoutFlags();
  if (flags && mismatch.row.back() != mismatch.expected_flags) {
    PrintValue("flags", "got", FlagsText(static_cast<Flags>(mismatch.row.back())));
    PrintValue("", "expected", FlagsText(mismatch.expected_flags));
  }
}

// Returns the kinds of the mismatches, or "" if all are wrong values.
std::string KindsText(const Judge& judge) {
  const uint64_t values = judge.mismatches(MismatchKind::kValue);
  const uint64_t flags = judge.mismatches(MismatchKind::kFlags);
  const uint64_t nans = judge.mismatches(MismatchKind::kNan);
  if (flags + nans == 0) return "";
  std::string text = fmt::format(": {} wrong value{}", values, values == 1 ? "" : "s");
  if (flags > 0) text += fmt::format(", {} wrong in the flags alone", flags);
  if (nans > 0) text += fmt::format(", {} NaN of another code (--nan any accepts them)", nans);
  return text;
}

// Prints one line of a list that shows the first `shown` of `count`.
void PrintMore(const char* what, uint64_t count, size_t shown) {
  if (count > shown) fmt::print("{:<10}... and {} more\n", what, count - shown);
}

std::string CaseText(const CaseGenerator& cases, const Operation& operation, uint64_t index) {
  std::vector<uint64_t> inputs(operation.inputs().size());
  cases.Case(index, inputs);
  return RowLine(operation.inputs(), inputs);
}

}  // namespace

int PrintVerdict(const Judge& judge, const char* place, const CaseColumns& columns) {
  const std::vector<Mismatch> first = judge.first();
  for (const Mismatch& mismatch : first) Print(mismatch, place, columns, judge);
  if (judge.mismatches() > first.size()) {
    fmt::print("... and {} more\n", judge.mismatches() - first.size());
  }
  const char* const what = judge.judged_flags() ? "results and flags" : "results";
  if (judge.mismatches() == 0) {
    fmt::print("{} cases, all {} right\n", judge.cases(), what);
    return 0;
  }
  fmt::print("{} cases, {} wrong{}\n", judge.cases(), judge.mismatches(), KindsText(judge));
  return 1;
}

int PrintCoverage(const Coverage& coverage,
                  const Operation& operation,
                  const CaseLevel& level,
                  const char* place) {
  const std::string name = ToString(level);
  if (coverage.Complete()) {
    fmt::print("complete: all {} cases of --level {}\n", coverage.expected, name);
    return 0;
  }
  const CaseGenerator cases(operation, level);
  for (const uint64_t index : coverage.first_missing) {
    fmt::print("missing   {}\n", CaseText(cases, operation, index));
  }
  PrintMore("missing", coverage.missing, coverage.first_missing.size());
  for (const Coverage::Repeated& repeated : coverage.first_repeated) {
    fmt::print(
        "repeated  {} {}: {}\n", place, repeated.place, CaseText(cases, operation, repeated.index));
  }
  PrintMore("repeated", coverage.repeated, coverage.first_repeated.size());
  for (const uint64_t at : coverage.first_foreign) fmt::print("foreign   {} {}\n", place, at);
  PrintMore("foreign", coverage.foreign, coverage.first_foreign.size());
  fmt::print("incomplete: of the {} cases of --level {}, {} missing; {} repeated; {} foreign\n",
             coverage.expected,
             name,
             coverage.missing,
             coverage.repeated,
             coverage.foreign);
  return 1;
}

MismatchFile::MismatchFile(const std::filesystem::path& path,
                           const char* place,
                           const CaseColumns& columns)
    : columns_(columns), file_(path) {
  std::string header = fmt::format("{},kind", place);
  for (size_t i = 0; i < columns.all.size(); ++i) {
    const std::string& name = columns.all[i].name;
    header += "," + name;
    if (i >= columns.inputs) header += fmt::format(",{}_expected", name);
  }
  file_.Write(header + "\n");
}

void MismatchFile::Write(const Mismatch& mismatch) {
  std::string line = fmt::format("{},{}", mismatch.place, ToString(mismatch.kind));
  for (size_t i = 0; i < columns_.all.size(); ++i) {
    const int digits = columns_.all[i].Digits();
    const bool given = i < mismatch.row.size();  // flags may be left out
    line += given ? fmt::format(",0x{:0{}X}", mismatch.row[i], digits) : ",";
    if (i < columns_.inputs) continue;
    const uint64_t expected = i < columns_.WithoutFlags() ? mismatch.expected[i - columns_.inputs]
                                                          : mismatch.expected_flags;
    line += fmt::format(",0x{:0{}X}", expected, digits);
  }
  file_.Write(line + "\n");
}

}  // namespace numsim::apps
