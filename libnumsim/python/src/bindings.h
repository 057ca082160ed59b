// The parts of the extension numsim._core, each with a file of its own, and how they see arrays.
//
// The extension is the library's public calls and nothing else: it takes contiguous arrays and
// writes into arrays that the caller has made. The Python files beside it (../numsim) know kinds of
// arrays, default arguments and names, and hold the documentation.
//
// Calls with an argument `context` compute where the arrays lie: in host memory without a context,
// or on a device in the stream of the context, where they return before their work is done.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <mutex>
#include <span>

#include "numsim/backend/backend_call.h"
#include "numsim/backend/device_context.h"
#include "numsim/backend/float_matrix.h"
#include "numsim/base/error.h"
#include "numsim/linear/linear_recipe.h"

namespace numsim::python {

namespace nb = nanobind;

void BindFormats(nb::module_& m);
void BindCasts(nb::module_& m);
void BindArithmetic(nb::module_& m);
void BindDevice(nb::module_& m);
void BindQuantize(nb::module_& m);
void BindGemm(nb::module_& m);
void BindLinear(nb::module_& m);
void BindUpdates(nb::module_& m);
void BindMeasures(nb::module_& m);
void BindMoments(nb::module_& m);
void BindOptimizer(nb::module_& m);
void BindProfiles(nb::module_& m);
void BindOracle(nb::module_& m);
void BindTraining(nb::module_& m);

// Around the work of every call on arrays: releases the interpreter's lock meanwhile, and keeps the
// backend as it is. Nothing in its scope needs the interpreter or makes another one.
class ArrayCall {
 private:
  nb::gil_scoped_release release_;  // first, so that nobody waits for a backend with the lock
  BackendCall backend_;
};

// {key: TOML} of the keys of [linear] in which options differ from the defaults (linear.cc).
nb::dict SettingsOf(const LinearOptions& options);

// Contiguous arrays at any place, of any shape and element type.
using PlacedInput = nb::ndarray<nb::ro, nb::c_contig>;
using PlacedOutput = nb::ndarray<nb::c_contig>;
// The same in host memory.
using Input = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<nb::c_contig, nb::device::cpu>;
// The same with one element type.
template <typename T>
using InputOf = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <typename T>
using OutputOf = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

// Return the elements in memory order. Those of untyped arrays must be of type T.
template <typename T>
std::span<const T> Elements(const Input& array) {
  return {static_cast<const T*>(array.data()), array.size()};
}
template <typename T>
std::span<T> Elements(const Output& array) {
  return {static_cast<T*>(array.data()), array.size()};
}
template <typename T>
std::span<const T> Elements(const InputOf<T>& array) {
  return {array.data(), array.size()};
}
template <typename T>
std::span<T> Elements(const OutputOf<T>& array) {
  return {array.data(), array.size()};
}

// Throws Error about the Python files' own mistake: they choose the types of arrays.
[[noreturn]] inline void RefuseType(const char* call) {
  throw Error::Format("{}: no version for arrays of these element types", call);
}

// Calls function(Code()) with the unsigned integer of 1, 2 or 4 bytes that the array's elements are.
template <typename Function>
void WithCodeType(const char* call, nb::dlpack::dtype type, Function&& function) {
  if (type == nb::dtype<uint8_t>()) {
    function(uint8_t());
  } else if (type == nb::dtype<uint16_t>()) {
    function(uint16_t());
  } else if (type == nb::dtype<uint32_t>()) {
    function(uint32_t());
  } else {
    RefuseType(call);
  }
}

// Calls function(Float()) with float or double, which the array's elements are.
template <typename Function>
void WithFloatType(const char* call, nb::dlpack::dtype type, Function&& function) {
  if (type == nb::dtype<float>()) {
    function(float());
  } else if (type == nb::dtype<double>()) {
    function(double());
  } else {
    RefuseType(call);
  }
}

// Calls function(codes) with the elements as unsigned integers of 1, 2 or 4 bytes.
template <typename Array, typename Function>
void WithCodes(const char* call, const Array& array, Function&& function) {
  WithCodeType(call, array.dtype(), [&](auto code) { function(Elements<decltype(code)>(array)); });
}

// Returns the place of the arrays of a call.
inline Place PlaceOf(DeviceContext* context) {
  return context == nullptr ? Place() : Place(*context);
}

// A context is for one thread at a time, and layers and optimisers of PyTorch share those of its
// streams: autograd calls from threads of its own.
inline std::mutex& DeviceMutex() {
  static std::mutex mutex;
  return mutex;
}

// Returns the elements of an array in memory order, as one row. Throws Error if they are not of type
// T or not at the place.
template <typename T, typename Array>
MatrixSpan<T> ElementsAt(Place place, const char* call, const Array& array) {
  const int device = place.IsHost() ? nb::device::cpu::value : nb::device::cuda::value;
  if (array.device_type() != device) {
    throw Error::Format("{}: an array that is not in memory of the {}", call, ToString(place));
  }
  if (array.dtype() != nb::dtype<std::remove_const_t<T>>()) RefuseType(call);
  return {static_cast<T*>(array.data()), MatrixShape{1, array.size()}, place};
}

template <typename Array>
MatrixShape ShapeOf(const Array& array) {
  if (array.ndim() != 2) throw Error::Format("expected 2 dimensions, found {}", array.ndim());
  return {array.shape(0), array.shape(1)};
}

// Returns an array with two dimensions as a matrix.
template <typename T, typename Array>
MatrixSpan<T> MatrixAt(Place place, const char* call, const Array& array) {
  const MatrixShape shape = ShapeOf(array);
  return ElementsAt<T>(place, call, array).As(shape.rows, shape.cols);
}

// Returns an array with two dimensions of float32, or on a device of codes of bf16 (uint16), as a
// matrix of floats.
inline ConstFloatSpan FloatsAt(Place place, const char* call, const PlacedInput& array) {
  if (array.dtype() != nb::dtype<uint16_t>()) return MatrixAt<const float>(place, call, array);
  if (place.IsHost()) RefuseType(call);
  return {
      MatrixAt<const uint16_t>(place, call, array).data, ShapeOf(array), place, Element::kBfloat16};
}
inline FloatSpan FloatsAt(Place place, const char* call, const PlacedOutput& array) {
  if (array.dtype() != nb::dtype<uint16_t>()) return MatrixAt<float>(place, call, array);
  if (place.IsHost()) RefuseType(call);
  return {MatrixAt<uint16_t>(place, call, array).data, ShapeOf(array), place, Element::kBfloat16};
}

}  // namespace numsim::python
