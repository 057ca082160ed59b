// The parts of the extension numsim._core, each with a file of its own, and how they see arrays.
//
// The extension is the library's public calls and nothing else: it takes contiguous arrays in host
// memory and writes into arrays that the caller has made. The Python files beside it (../numsim)
// know kinds of arrays, default arguments and names, and hold the documentation.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <span>

#include "numsim/backend/backend_call.h"
#include "numsim/base/error.h"

namespace numsim::python {

namespace nb = nanobind;

void BindFormats(nb::module_& m);
void BindCasts(nb::module_& m);
void BindArithmetic(nb::module_& m);
void BindDevice(nb::module_& m);
void BindQuantize(nb::module_& m);
void BindGemm(nb::module_& m);
void BindGiven(nb::module_& m);
void BindLinear(nb::module_& m);
void BindUpdates(nb::module_& m);
void BindMeasures(nb::module_& m);
void BindMoments(nb::module_& m);
void BindOptimizer(nb::module_& m);
void BindProfiles(nb::module_& m);
void BindOracle(nb::module_& m);

// Around the work of every call on arrays: releases the interpreter's lock meanwhile, and keeps the
// backend as it is. Nothing in its scope needs the interpreter or makes another one.
class ArrayCall {
 private:
  nb::gil_scoped_release release_;  // first, so that nobody waits for a backend with the lock
  BackendCall backend_;
};

// Contiguous arrays in host memory, of any shape and element type.
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

// Calls function(codes) with the elements as unsigned integers of 1, 2 or 4 bytes.
template <typename Array, typename Function>
void WithCodes(const char* call, const Array& array, Function&& function) {
  WithCodeType(call, array.dtype(), [&](auto code) { function(Elements<decltype(code)>(array)); });
}

}  // namespace numsim::python
