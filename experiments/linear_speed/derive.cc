// Derives layers.csv of `linear-speed` and reads values for figures and summary from the tables.
#include <algorithm>
#include <initializer_list>
#include <map>
#include <numeric>

#include "experiments/linear_speed/linear_speed.h"
#include "experiments/shared/special_values.h"
#include "numsim/base/error.h"

namespace numsim::experiments::linear_speed {
namespace {

// The members of a LayerKey in the order of the columns.
constexpr std::pair<std::string_view, std::string LayerKey::*> kKeyColumns[] = {
    {"device", &LayerKey::device},
    {"backend", &LayerKey::backend},
    {"threads", &LayerKey::threads},
    {"library", &LayerKey::library},
    {"kind", &LayerKey::kind},
    {"format", &LayerKey::format},
    {"high_precision", &LayerKey::high_precision},
    {"product", &LayerKey::product},
    {"width", &LayerKey::width},
};

const std::initializer_list<std::string_view> kLayer = {"device",
                                                        "backend",
                                                        "threads",
                                                        "library",
                                                        "kind",
                                                        "format",
                                                        "high_precision",
                                                        "product",
                                                        "width"};

double Sum(const Frame& frame, std::string_view column) {
  const std::vector<double> values = frame.Numbers(column);
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// Returns the seconds of a layer over all sizes; infinite if it was not timed.
double TotalSeconds(const Frame& layers, const LayerKey& key) {
  const double total = Sum(OfLayer(layers, key), "seconds");
  return total > 0 ? total : kInfinity;
}

// Returns the mean of `column` by dim.
Curve MeanByDim(const Frame& frame, std::string_view column) {
  std::map<double, double> means;
  for (const Frame& dim : frame.By({"dim"})) means[dim.Number("dim")] = dim.Mean(column);
  Curve curve;
  for (const auto& [dim, mean] : means) {
    curve.dim.push_back(dim);
    curve.value.push_back(mean);
  }
  return curve;
}

// Adds the row of a layer at a size, from the operations of all layers at that size.
void AddLayer(const Frame& layer, const Frame& size, std::vector<Row>& layers) {
  const LayerKey key = KeyOf(layer);
  const PassTimes times(layer);
  const double standard = PassTimes(OfLayer(size, key.Standard())).Mean();  // NaN: not timed
  Row cells = KeyCells(key);
  cells.insert(cells.end(), {layer.Text("dim"), layer.Text("tokens"), times.Mean()});
  for (const Part part : kParts) cells.push_back(times.Share(part));
  cells.insert(cells.end(),
               {100 * (1 - times.Mean() / standard),
                standard / times.Mean(),
                layer.Where("part", ToString(Part::kOther)).Mean("kept_bytes")});
  layers.push_back(std::move(cells));
}

}  // namespace

PassTimes::PassTimes(const Frame& operations) {
  for (const Part part : kParts) {
    seconds[static_cast<size_t>(part)] = Sum(operations.Where("part", ToString(part)), "seconds");
  }
  // Every pass has exactly one row of part `other`.
  passes = static_cast<double>(operations.Where("part", ToString(Part::kOther)).Size());
}

double PassTimes::Total() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

LayerKey LayerKey::Standard() const {
  LayerKey standard = *this;
  standard.kind = kStandard;
  standard.format = high_precision;
  return standard;
}

LayerKey KeyOf(const Frame& rows) {
  LayerKey key;
  for (const auto& [column, member] : kKeyColumns) key.*member = rows.Text(column);
  return key;
}

Frame OfLayer(const Frame& frame, const LayerKey& key) {
  return frame.Where("kind", key.kind).Where([&](const Frame& row) { return KeyOf(row) == key; });
}

Row KeyCells(const LayerKey& key) {
  Row cells;
  for (const auto& column : kKeyColumns) cells.push_back(key.*column.second);
  return cells;
}

std::vector<LayerKey> LayerKeys(const Frame& frame) {
  std::vector<LayerKey> keys;
  for (const Frame& layer : frame.By(kLayer)) keys.push_back(KeyOf(layer));
  return keys;
}

std::string Label(const LayerKey& key, std::span<const LayerKey> all) {
  std::string label = key.kind;
  for (const auto& column : kKeyColumns) {
    const auto member = column.second;
    const auto differs = [&](const LayerKey& other) { return other.*member != key.*member; };
    if (member == &LayerKey::kind || std::none_of(all.begin(), all.end(), differs)) continue;
    if (member == &LayerKey::product) {
      label += " (" + key.product + ")";
    } else {
      label += (member == &LayerKey::width ? " x" : " ") + key.*member;
    }
  }
  return label;
}

std::vector<std::string> TokenTexts(const Settings& settings) {
  std::vector<int64_t> tokens = settings.GetIntegers("tokens", 1, 1 << 20);
  std::sort(tokens.begin(), tokens.end());
  std::vector<std::string> texts;
  texts.reserve(tokens.size());
  for (const int64_t count : tokens) texts.push_back(std::to_string(count));
  return texts;
}

std::string FigureTokens(const Settings& settings) {
  const std::vector<std::string> tokens = TokenTexts(settings);
  const auto goal = std::find(tokens.begin(), tokens.end(), "65536");
  return goal != tokens.end() ? *goal : tokens.back();
}

LayerKey Subject(const Frame& layers) {
  const std::vector<LayerKey> keys = LayerKeys(layers);
  NUMSIM_CHECK(!keys.empty(), "no layers");
  const auto is_switchback = [](const LayerKey& key) { return key.kind == "switchback"; };
  const auto is_compared = [](const LayerKey& key) { return key.kind != kStandard; };
  auto first = std::find_if(keys.begin(), keys.end(), is_switchback);
  if (first == keys.end()) first = std::find_if(keys.begin(), keys.end(), is_compared);
  if (first == keys.end()) first = keys.begin();
  LayerKey subject = *first;
  for (const LayerKey& key : keys) {
    LayerKey same = key;
    same.product = subject.product;
    if (same != subject) continue;
    if (TotalSeconds(layers, key.Standard()) < TotalSeconds(layers, subject.Standard())) {
      subject = key;
    }
  }
  return subject;
}

Curve CurveOf(const Frame& layers,
              const LayerKey& key,
              std::string_view tokens,
              std::string_view column) {
  return MeanByDim(OfLayer(layers.Where("tokens", tokens), key), column);
}

double ValueAt(const Curve& curve, double dim) {
  const auto found = std::find(curve.dim.begin(), curve.dim.end(), dim);
  return found == curve.dim.end() ? kNaN
                                  : curve.value[static_cast<size_t>(found - curve.dim.begin())];
}

Curve OperationCurve(const Frame& operations,
                     const LayerKey& key,
                     std::string_view tokens,
                     std::string_view operation) {
  const Frame rows = operations.Where("operation", operation).Where("tokens", tokens);
  return MeanByDim(OfLayer(rows, key), "seconds");
}

std::vector<Row> LayerRows(const study::Results& results) {
  std::vector<Row> rows;
  for (const Frame& size : results.Of("operations").By({"dim", "tokens"})) {
    for (const Frame& layer : size.By(kLayer)) AddLayer(layer, size, rows);
  }
  return rows;
}

}  // namespace numsim::experiments::linear_speed
