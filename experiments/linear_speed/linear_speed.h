// Experiment `linear-speed`: the time of each operation of a linear layer, by layer kind and size
// (Appendix B and Figures 6, 7 (left) and 10 of [SwitchBack]). study.toml has its options, tables and claims.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/runner/experiment.h"
#include "experiments/study/study_file.h"
#include "numsim/linear/linear.h"

namespace numsim::experiments {

Experiment LinearSpeed();

// The parts below are shared between this experiment's files and its tests.
namespace linear_speed {

inline constexpr std::string_view kStandard = "standard";

// The category of an operation.
enum class Part : uint8_t {
  kProduct,   // one of the three GEMMs, including dequantisation as it stores the result
  kQuantize,  // quantising an operand of a GEMM
  kConvert,   // rounding a tensor to the format saved for backward, or dequantising it
  kOther,     // the rest of a pass; see the column `part` of operations.csv
};
inline constexpr Part kParts[] = {Part::kProduct, Part::kQuantize, Part::kConvert, Part::kOther};
std::string_view ToString(Part part);  // product, quantize, convert, other
Part ParsePart(std::string_view text);
Part PartOf(LinearOp step);

inline constexpr size_t kSteps = static_cast<size_t>(LinearOp::kSaveX) + 1;

// A layer to be timed.
struct TimedLayer {
  std::string format;   // format of quantised operands; the high precision under kind standard
  std::string product;  // accumulation mode of the GEMMs in high precision
  LinearRecipe recipe;
};

// Returns every layer of a trial, in the order of the rows. Throws Error naming a bad option.
std::vector<TimedLayer> TimedLayers(const Settings& settings);

Rows Measure(const Settings& settings, const Trial& trial);
std::vector<Row> LayerRows(const study::Results& results);
// Returns the rows of crossings.csv, computed from a finished layers.csv.
std::vector<Row> CrossingRows(const Frame& layers);
// Return the functions that study.toml names.
study::Named<std::function<Figure(const study::Results&)>> Figures();
study::Named<std::function<Evidence(const study::Results&)>> ClaimEvidence();
std::string Notes(const study::Results& results);

// Identifies a layer, and where it was timed, in all tables.
struct LayerKey {
  std::string device, backend, threads, library, kind, format, high_precision, product, width;

  friend auto operator<=>(const LayerKey&, const LayerKey&) = default;

  // Returns the key of the standard layer that this layer is compared with; it agrees with this key
  // in everything except kind and format.
  LayerKey Standard() const;
};
// Returns the key of the first row.
LayerKey KeyOf(const Frame& rows);
// Selects the rows of a layer.
Frame OfLayer(const Frame& frame, const LayerKey& key);
// Returns the cells of `key` in the order of the columns.
Row KeyCells(const LayerKey& key);

// Returns the distinct layers, in order of appearance.
std::vector<LayerKey> LayerKeys(const Frame& frame);

// Returns the kind and every other property that distinguishes `key` from the layers of `all`, with
// the accumulation mode in parentheses, "switchback int8 (library)", and the width as "x4".
std::string Label(const LayerKey& key, std::span<const LayerKey> all);

// Returns the numbers of tokens in ascending order, as the tables write them.
std::vector<std::string> TokenTexts(const Settings& settings);

// Returns the number of tokens for figures that show only one: 65536, the number in the project's
// goals, or the greatest if that was not timed.
std::string FigureTokens(const Settings& settings);

// Returns the layer that claims and the figure of operations are about: the first switchback,
// otherwise the first layer that is not standard, otherwise the first. Of the accumulation modes of
// that layer, it has the one under which `standard` took the least time over all sizes. Requires
// that layers.csv has rows.
LayerKey Subject(const Frame& layers);

// A column of a table against the dim, ascending; empty if the layer was not timed with that number
// of tokens.
struct Curve {
  std::vector<double> dim, value;
};
// Returns the value at `dim`, or NaN if there is none.
double ValueAt(const Curve& curve, double dim);
// Returns a column of layers.csv for one layer and number of tokens.
Curve CurveOf(const Frame& layers,
              const LayerKey& key,
              std::string_view tokens,
              std::string_view column);

// Returns the seconds of one operation in operations.csv, as the mean over both directions (dim to
// width and back) and all seeds.
Curve OperationCurve(const Frame& operations,
                     const LayerKey& key,
                     std::string_view tokens,
                     std::string_view operation);

// The size from which a layer saves time at every greater size that was timed.
struct Crossing {
  // The smallest timed size of that kind, and the interpolated size at which saving starts: where
  // the line of saved percent against log2 of the size, from the size before, crosses 0. Both NaN
  // if the greatest size saves nothing.
  double size, between;
  bool always;  // true if the smallest timed size already saves; `between` then equals `size`
};
// Requires ascending sizes, at least one, and as many percentages.
Crossing FindCrossing(std::span<const double> sizes, std::span<const double> saved_percent);

// The times of one layer at one size: sums over both directions and all seeds.
struct PassTimes {
  std::array<double, std::size(kParts)> seconds = {};  // by Part
  double passes = 0;                                   // number of directions times seeds

  // Adds up the rows of operations.csv.
  explicit PassTimes(const Frame& operations);
  double Total() const;
  double Mean() const { return Total() / passes; }  // seconds of a pass
  double Share(Part part) const { return seconds[static_cast<size_t>(part)] / Total(); }
};

// Return text for the notes; "" without rows of a GPU: this project's goals on an H200 with what
// was measured, and the rows of crossings.csv.
std::string GoalNotes(const Frame& layers);
std::string CrossingNotes(const Frame& crossings);

}  // namespace linear_speed
}  // namespace numsim::experiments
