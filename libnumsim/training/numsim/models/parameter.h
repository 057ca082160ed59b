// The parameters of a model.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/backend/matrix.h"

namespace numsim {

// The role of a parameter, by which optimisers and filters treat it.
enum class ParameterRole : uint8_t {
  kMatrix,     // weight of a linear layer, out x in
  kEmbedding,  // token and position tables, class tokens
  kGain,       // of a norm or a layer-scale
  kBias,
  kScalar,  // CLIP's temperature
};
// Returns matrix, embedding, gain, bias or scalar.
std::string_view ToString(ParameterRole role);

// The distribution of a parameter's initial values.
struct Initial {
  float mean = 0;       // mean of every element
  float deviation = 0;  // standard deviation of normal values; 0: all equal the mean
};

// How the values of new parameters are set.
enum class InitialValues : uint8_t {
  kDrawn,  // drawn as Initial specifies
  kMeans,  // set to the mean; for callers that overwrite the values anyway
};

// A parameter of a model. Value and gradient are rows x cols; vectors have one row. Every parameter
// is used once per pass, so a backward pass overwrites its gradient instead of adding to it.
template <typename T>
struct Parameter {
  std::string name;  // "blocks.3.attention.qkv.weight"
  ParameterRole role = ParameterRole::kMatrix;
  Buffer<T> value, gradient;

  // Returns the number of elements.
  size_t Elements() const { return value.View().Elements(); }
};

// The parameters of a model, in the order in which its layers were constructed. Their addresses do
// not change.
template <typename T>
class ParameterList {
 public:
  // A parameter's initial values depend only on `seed` and on its index in the list. They are
  // float32 values for either T, so that models of both types start with the same weights. Values
  // and gradients are in memory of `place`.
  explicit ParameterList(uint64_t seed,
                         InitialValues initial = InitialValues::kDrawn,
                         Place place = Place());
  ParameterList(const ParameterList&) = delete;
  ParameterList& operator=(const ParameterList&) = delete;

  // Appends a parameter. Requires a name that is not in the list. The gradient is initially zero.
  Parameter<T>& Add(
      std::string name, ParameterRole role, size_t rows, size_t cols, const Initial& initial);

  // Appends a parameter whose value, and gradient, are in memory of the caller at the list's place:
  // contiguous matrices of one shape that live as long as the list uses them. The gradient may be
  // empty: it borrows other memory later (Buffer::Borrow, then Resize).
  Parameter<T>& AddBorrowed(std::string name,
                            ParameterRole role,
                            MatrixSpan<T> value,
                            MatrixSpan<T> gradient);

  // The parameters in their order, as a container of the standard library has its elements.
  auto begin() { return parameters_.begin(); }
  auto end() { return parameters_.end(); }
  auto begin() const { return parameters_.begin(); }
  auto end() const { return parameters_.end(); }
  size_t size() const { return parameters_.size(); }
  Parameter<T>& operator[](size_t i) { return parameters_[i]; }
  size_t Elements() const;  // of all parameters
  Place place() const { return place_; }
  // Returns the parameter with this name, or nullptr.
  Parameter<T>* Find(std::string_view name);

 private:
  Parameter<T>& Append(std::string name, ParameterRole role);

  uint64_t seed_;
  Place place_;
  InitialValues initial_;
  std::deque<Parameter<T>> parameters_;
};

}  // namespace numsim
