// The parameters of a model.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/ops/tensor.h"

namespace numsim {

enum class ParameterRole : uint8_t {
  kMatrix,     // of a linear layer, out x in
  kEmbedding,  // tables of tokens and of positions, class tokens
  kGain,       // of a norm or a layer-scale
  kBias,
  kScalar,  // CLIP's temperature
};
// matrix embedding gain bias scalar.
std::string_view ToString(ParameterRole role);

// How a parameter starts.
struct Initial {
  float mean = 0;       // of every element
  float deviation = 0;  // standard deviation of normal draws about it
};

enum class InitialValues : uint8_t {
  kDrawn,  // as Initial says
  kMeans,  // nothing is drawn: for whoever writes the values next
};

// Value and gradient are rows x cols; vectors have one row. Every parameter is used once in a pass,
// so a backward pass writes gradients and does not add to them.
template <typename T>
struct Parameter {
  std::string name;  // "blocks.3.attention.qkv.weight"
  ParameterRole role = ParameterRole::kMatrix;
  Buffer<T> value, gradient;

  size_t Elements() const { return value.View().Elements(); }
};

// In the order in which layers were made, at addresses that stay.
template <typename T>
class ParameterList {
 public:
  // `seed` decides the initial values, with the number of the parameter in the list; they are
  // float32 values for either T, so models of both types start alike.
  explicit ParameterList(uint64_t seed,
                         InitialValues initial = InitialValues::kDrawn,
                         Place place = Place::kHost);
  ParameterList(const ParameterList&) = delete;
  ParameterList& operator=(const ParameterList&) = delete;

  // Requires a name that is not in the list. The gradient starts as zeros.
  Parameter<T>& Add(
      std::string name, ParameterRole role, size_t rows, size_t cols, const Initial& initial);

  auto begin() { return parameters_.begin(); }
  auto end() { return parameters_.end(); }
  auto begin() const { return parameters_.begin(); }
  auto end() const { return parameters_.end(); }
  size_t size() const { return parameters_.size(); }
  Parameter<T>& operator[](size_t i) { return parameters_[i]; }
  size_t Elements() const;  // of all
  Place place() const { return place_; }
  // nullptr when there is none.
  Parameter<T>* Find(std::string_view name);

 private:
  uint64_t seed_;
  Place place_;
  InitialValues initial_;
  std::deque<Parameter<T>> parameters_;
};

}  // namespace numsim
