#include "experiments/claims/frame.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "numsim/base/error.h"
#include "numsim/base/require.h"

namespace numsim::experiments {

Frame::Frame(const Table& table) : table_(&table), rows_(table.rows.size()) {
  std::iota(rows_.begin(), rows_.end(), size_t{0});
}

std::string Frame::Text(size_t i, std::string_view column) const {
  NUMSIM_REQUIRE(i < Size(), "Frame: row {} of {}, column '{}'", i, Size(), column);
  return table_->Text(rows_[i], column);
}

double Frame::Number(size_t i, std::string_view column) const {
  NUMSIM_REQUIRE(i < Size(), "Frame: row {} of {}, column '{}'", i, Size(), column);
  return table_->Number(rows_[i], column);
}

std::vector<double> Frame::Numbers(std::string_view column) const {
  std::vector<double> numbers;
  numbers.reserve(Size());
  for (size_t i = 0; i < Size(); ++i) numbers.push_back(Number(i, column));
  return numbers;
}

std::vector<std::string> Frame::Distinct(std::string_view column) const {
  std::vector<std::string> values;
  for (const Frame& group : By({column})) values.push_back(group.Text(column));
  return values;
}

Frame Frame::Where(std::string_view column, const Cell& value) const {
  const size_t index = table_->Column(column);
  const std::string text = value.Text();
  std::vector<size_t> kept;
  for (const size_t row : rows_) {
    if (table_->rows[row].at(index).Text() == text) kept.push_back(row);
  }
  return {table_, std::move(kept)};
}

Frame Frame::Where(const std::function<bool(const Frame&)>& keep) const {
  std::vector<size_t> kept;
  for (const size_t row : rows_) {
    if (keep(Frame(table_, {row}))) kept.push_back(row);
  }
  return {table_, std::move(kept)};
}

std::vector<Frame> Frame::By(std::initializer_list<std::string_view> columns) const {
  return By(std::vector<std::string>(columns.begin(), columns.end()));
}

std::vector<Frame> Frame::By(const std::vector<std::string>& columns) const {
  std::vector<size_t> indices;
  indices.reserve(columns.size());
  for (const std::string& column : columns) indices.push_back(table_->Column(column));
  std::map<std::vector<std::string>, size_t> group_of;
  std::vector<Frame> groups;
  for (const size_t row : rows_) {
    std::vector<std::string> key;
    key.reserve(indices.size());
    for (const size_t index : indices) key.push_back(table_->rows[row].at(index).Text());
    const auto [entry, is_new] = group_of.emplace(std::move(key), groups.size());
    if (is_new) groups.push_back(Frame(table_, {}));
    groups[entry->second].rows_.push_back(row);
  }
  return groups;
}

void Frame::ForEach(const std::function<void(const Frame&)>& use) const {
  for (const size_t row : rows_) use(Frame(table_, {row}));
}

SeedValues Frame::OverSeeds(std::string_view column) const {
  SeedValues values;
  for (size_t i = 0; i < Size(); ++i) {
    const std::string seed = Text(i, "seed");
    if (!values.emplace(seed, Number(i, column)).second) {
      throw Error::Format("column '{}': seed {} has two values", column, seed);
    }
  }
  return values;
}

double Frame::Mean(std::string_view column) const {
  if (Empty()) return std::nan("");
  double sum = 0;
  for (size_t i = 0; i < Size(); ++i) sum += Number(i, column);
  return sum / static_cast<double>(Size());
}

Estimate MeanOf(const SeedValues& values) {
  if (values.empty()) return {std::nan(""), std::nan(""), std::nan("")};
  std::vector<double> list;
  for (const auto& [seed, value] : values) list.push_back(value);
  return MeanOf(std::span<const double>(list));
}

void Append(std::initializer_list<Estimate> estimates, Row& row) {
  for (const Estimate& estimate : estimates) {
    row.insert(row.end(), {estimate.value, estimate.low, estimate.high});
  }
}

Estimate PairedGap(const SeedValues& values, const SeedValues& baseline) {
  SeedValues gaps;
  for (const auto& [seed, value] : values) {
    const auto found = baseline.find(seed);
    if (found != baseline.end()) gaps[seed] = value - found->second;
  }
  return MeanOf(gaps);
}

namespace {

// The values of all seeds, by x.
using ValuesByX = std::map<double, std::vector<double>>;

Series LineThrough(const ValuesByX& by_x) {
  Series series;
  series.markers = false;
  size_t most = 1;
  for (const auto& [at, values] : by_x) {
    series.x.push_back(at);
    series.y.push_back(MeanOf(std::span<const double>(values)).value);
    series.low.push_back(*std::min_element(values.begin(), values.end()));
    series.high.push_back(*std::max_element(values.begin(), values.end()));
    most = std::max(most, values.size());
  }
  if (most == 1) {
    series.low.clear();
    series.high.clear();
  }
  return series;
}

}  // namespace

Series Line(const Frame& frame, std::string_view x, std::string_view y) {
  ValuesByX by_x;
  for (size_t i = 0; i < frame.Size(); ++i) {
    const double value = frame.Number(i, y);
    if (std::isfinite(value)) by_x[frame.Number(i, x)].push_back(value);
  }
  return LineThrough(by_x);
}

Series GapLine(const Frame& frame, const Frame& baseline, std::string_view x, std::string_view y) {
  std::map<std::pair<std::string, double>, double> reference;  // by seed and x
  for (size_t i = 0; i < baseline.Size(); ++i) {
    reference[{baseline.Text(i, "seed"), baseline.Number(i, x)}] = baseline.Number(i, y);
  }
  ValuesByX by_x;
  for (size_t i = 0; i < frame.Size(); ++i) {
    const auto same = reference.find({frame.Text(i, "seed"), frame.Number(i, x)});
    if (same == reference.end()) continue;
    const double gap = frame.Number(i, y) - same->second;
    if (std::isfinite(gap)) by_x[frame.Number(i, x)].push_back(gap);
  }
  return LineThrough(by_x);
}

Axis AxisOf(const Frame& frame, std::string_view column, std::string label) {
  double last = 1;
  for (const double value : frame.Numbers(column)) last = std::max(last, value);
  return {.label = std::move(label), .low = 0, .high = last};
}

}  // namespace numsim::experiments
