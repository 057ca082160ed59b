#include "apps/stats_against.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "apps/code_array.h"
#include "apps/stats_table.h"
#include "numsim/base/error.h"
#include "numsim/io/tensor_file.h"
#include "numsim/stats/error_measures.h"

namespace numsim::apps {
namespace {

ErrorMeasures ErrorOfGiven(const GivenTensor& tensor, std::span<const float> original) {
  ErrorMeasures total;
  const MatrixStack& stack = tensor.placement.stack;
  const size_t each = stack.shape.Elements();
  std::vector<float> dequantized(each);
  for (size_t i = 0; i < stack.matrices; ++i) {
    total.Merge(QuantizationError(
        original.subspan(i * each, each), tensor.Matrix(i), std::span(dequantized)));
  }
  return total;
}

// The original tensors, by name.
class Originals {
 public:
  Originals(const std::string& path, bool single) : file_(path), path_(path), single_(single) {}

  // Returns the values of the namesake. Throws Error with the reason if there is none of this shape.
  std::vector<float> Read(const std::string& name, const std::vector<size_t>& shape) {
    const std::vector<TensorInfo>& tensors = file_.Tensors();
    const bool any = single_ && tensors.size() == 1;
    const auto found = std::find_if(
        tensors.begin(), tensors.end(), [&](const TensorInfo& t) { return any || t.name == name; });
    if (found == tensors.end()) throw Error::Format("not in {}", path_);
    used_.insert(found->name);
    if (found->shape != shape) {
      throw Error::Format(
          "shape {}, but {} in {}", ShapeToString(shape), ShapeToString(found->shape), path_);
    }
    return ToFloat32(file_.Read(found->name), file_.Describe(*found));
  }

  void AddUnused(std::vector<Unmeasured>& unmeasured) const {
    for (const TensorInfo& tensor : file_.Tensors()) {
      if (used_.contains(tensor.name)) continue;
      unmeasured.push_back({tensor.name, tensor.dtype, fmt::format("only in {}", path_)});
    }
  }

 private:
  TensorFile file_;
  std::string path_;
  bool single_;
  std::set<std::string> used_;
};

void AddGiven(Table& table,
              const std::string& dtype,
              const GivenTensor& tensor,
              Originals& originals) {
  const std::vector<float> original = originals.Read(tensor.name, tensor.codes.shape);
  AddMeasuredRow(table,
                 {tensor.name,
                  dtype,
                  tensor.codes.shape,
                  tensor.placement.stack,
                  tensor.format.name,
                  ToString(tensor.placement.layout),
                  "given"},
                 MeasuresOf(ErrorOfGiven(tensor, original)));
}

void AddPlain(Table& table,
              const TensorFile& file,
              const TensorInfo& tensor,
              Originals& originals) {
  const Array array = file.Read(tensor.name);
  const std::vector<float> values = ToFloat32(array, file.Describe(tensor));
  const std::vector<float> original = originals.Read(tensor.name, array.shape);
  AddMeasuredRow(
      table,
      {tensor.name,
       std::string(ToString(array.type)),
       array.shape,
       FirstDimensionAsRows(array.shape),
       std::string(FormatOf(array.type)),
       "tensor",
       "none"},
      MeasuresOf(MeasureError(original, values, std::numeric_limits<double>::infinity())));
}

// Calls work(); if that throws Error, adds the tensor to the unmeasured ones with the reason.
template <typename Work>
void OrUnmeasured(std::vector<Unmeasured>& unmeasured,
                  const std::string& name,
                  const std::string& dtype,
                  Work work) {
  try {
    work();
  } catch (const Error& error) {
    unmeasured.push_back({name, dtype, error.what()});
  }
}

void AddPair(Table& table,
             const std::string& codes,
             const std::string& scales,
             Originals& originals,
             const GivenOptions& options) {
  const GivenTensor tensor = JoinGivenTensor(codes, scales, options);
  AddGiven(table, std::string(ToString(tensor.codes.type)), tensor, originals);
}

}  // namespace

std::vector<Unmeasured> AddErrorsAgainst(Table& table,
                                         const std::string& path,
                                         const std::string& scales,
                                         const std::string& original,
                                         const std::string& selected,
                                         const GivenOptions& options) {
  std::vector<Unmeasured> unmeasured;
  if (!scales.empty()) {
    Originals originals(original, true);
    AddPair(table, path, scales, originals, options);
    return unmeasured;
  }
  const TensorFile file(path);
  const std::vector<GivenNames> given = FindGivenTensors(file);
  const std::set<std::string> parts = PartsOf(given);
  const auto wanted = [&](const std::string& name) { return selected.empty() || name == selected; };
  size_t others = 0;
  for (const TensorInfo& tensor : file.Tensors()) others += parts.contains(tensor.name) ? 0 : 1;
  Originals originals(original, given.size() + others == 1);
  for (const GivenNames& names : given) {
    if (!wanted(names.name)) continue;
    const std::string& dtype = file.Find(names.codes).dtype;
    OrUnmeasured(unmeasured, names.name, dtype, [&] {
      AddGiven(table, dtype, ReadGivenTensor(file, names, options), originals);
    });
  }
  for (const TensorInfo& tensor : file.Tensors()) {
    if (parts.contains(tensor.name) || !wanted(tensor.name)) continue;
    OrUnmeasured(
        unmeasured, tensor.name, tensor.dtype, [&] { AddPlain(table, file, tensor, originals); });
  }
  if (selected.empty()) originals.AddUnused(unmeasured);
  return unmeasured;
}

}  // namespace numsim::apps
