#include "numsim/models/parameter.h"

#include <algorithm>
#include <utility>

#include "numsim/base/keyword.h"
#include "numsim/base/parallel.h"
#include "numsim/base/require.h"
#include "numsim/random/distributions.h"

namespace numsim {
namespace {

constexpr Keyword<ParameterRole> kRoles[] = {{"matrix", ParameterRole::kMatrix},
                                             {"embedding", ParameterRole::kEmbedding},
                                             {"gain", ParameterRole::kGain},
                                             {"bias", ParameterRole::kBias},
                                             {"scalar", ParameterRole::kScalar}};

constexpr size_t kDrawsWorthAThread = 4096;

// Returns n values: element i is mean + deviation * normal draw i of the stream, in float32.
std::vector<float> ValuesOf(const Initial& initial, RandomStream stream, size_t n) {
  std::vector<float> values(n, initial.mean);
  if (initial.deviation == 0) return values;
  ParallelFor(n, kDrawsWorthAThread, [&](size_t begin, size_t end) {
    const std::span<float> draws = std::span(values).subspan(begin, end - begin);
    FillNormal(stream, begin, draws);
    for (float& draw : draws) draw = initial.mean + initial.deviation * draw;
  });
  return values;
}

}  // namespace

std::string_view ToString(ParameterRole role) { return KeywordToString(kRoles, role); }

template <typename T>
ParameterList<T>::ParameterList(uint64_t seed, InitialValues initial, Place place)
    : seed_(seed), place_(place), initial_(initial) {}

template <typename T>
Parameter<T>& ParameterList<T>::Append(std::string name, ParameterRole role) {
  NUMSIM_REQUIRE(Find(name) == nullptr, "ParameterList::Add: parameter '{}' twice", name);
  return parameters_.emplace_back(Parameter<T>{.name = std::move(name),
                                               .role = role,
                                               .value = Buffer<T>(place_),
                                               .gradient = Buffer<T>(place_)});
}

template <typename T>
Parameter<T>& ParameterList<T>::AddBorrowed(std::string name,
                                            ParameterRole role,
                                            MatrixSpan<T> value,
                                            MatrixSpan<T> gradient) {
  Parameter<T>& parameter = Append(std::move(name), role);
  parameter.value.Borrow(value);
  parameter.value.Resize(value.rows, value.cols);
  if (gradient.Empty()) return parameter;
  parameter.gradient.Borrow(gradient);
  parameter.gradient.Resize(gradient.rows, gradient.cols);
  return parameter;
}

template <typename T>
Parameter<T>& ParameterList<T>::Add(
    std::string name, ParameterRole role, size_t rows, size_t cols, const Initial& initial) {
  const RandomStream stream{DeriveSeed(seed_, RandomPurpose::kWeights), parameters_.size()};
  const Initial drawn{initial.mean, initial_ == InitialValues::kDrawn ? initial.deviation : 0};
  Parameter<T>& parameter = Append(std::move(name), role);
  // Drawn on the host, whatever the place.
  const std::vector<float> values = ValuesOf(drawn, stream, rows * cols);
  CopyMatrix<T>(std::vector<T>(values.begin(), values.end()), parameter.value.Resize(rows, cols));
  CopyMatrix<T>(std::vector<T>(values.size()), parameter.gradient.Resize(rows, cols));
  return parameter;
}

template <typename T>
size_t ParameterList<T>::Elements() const {
  size_t sum = 0;
  for (const Parameter<T>& parameter : parameters_) sum += parameter.Elements();
  return sum;
}

template <typename T>
Parameter<T>* ParameterList<T>::Find(std::string_view name) {
  const auto found = std::find_if(parameters_.begin(),
                                  parameters_.end(),
                                  [&](const Parameter<T>& p) { return p.name == name; });
  return found == parameters_.end() ? nullptr : &*found;
}

template class ParameterList<float>;
template class ParameterList<double>;

}  // namespace numsim
