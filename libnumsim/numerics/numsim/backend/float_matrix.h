// Matrices of floats that are stored as float32 or, on a device, as bf16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "numsim/backend/matrix.h"

namespace numsim {

// The numbers that a matrix of floats holds. An operation computes in float32 or better and rounds
// each element of a result once, when it stores it, to the element of the result (nearest even,
// nonsaturating). On a device, kBfloat16 is memory of bf16 codes; on the host it is float32 memory
// whose values are numbers of bf16. So both places hold the same numbers.
enum class Element : uint8_t { kFloat32, kBfloat16 };

// Returns the bytes that one element takes at a place.
constexpr size_t BytesOf(Element element, Place place) {
  return element == Element::kFloat32 || place.IsHost() ? 4 : 2;
}

// A view of a row-major matrix of floats owned by somebody else. Its memory has no type: Float32()
// and Bf16() give it, and throw Error for memory of the other kind. `Address` is void or const void.
template <typename Address>
struct BasicFloatSpan {
  // T, with const if the view is read-only.
  template <typename T>
  using Like = std::conditional_t<std::is_const_v<Address>, const T, T>;

  Address* data = nullptr;
  size_t rows = 0, cols = 0;
  size_t stride = 0;  // elements from one row to the next, >= cols
  Place place;
  Element element = Element::kFloat32;

  BasicFloatSpan() = default;
  // A contiguous matrix.
  BasicFloatSpan(Address* begin, MatrixShape shape, Place where, Element stored)
      : data(begin),
        rows(shape.rows),
        cols(shape.cols),
        stride(shape.cols),
        place(where),
        element(stored) {}
  // A matrix of float32.
  template <typename T>
  requires(std::is_convertible_v<T*, Like<float>*>)  //
      BasicFloatSpan(const MatrixSpan<T>& m)
      : data(m.data), rows(m.rows), cols(m.cols), stride(m.stride), place(m.place) {}
  // Vectors of float32 on the host.
  BasicFloatSpan(Like<float>* begin, size_t elements)
      : BasicFloatSpan(MatrixSpan<Like<float>>(begin, elements)) {}
  template <typename Values>
  requires(std::is_convertible_v<Values&, std::span<Like<float>>>)  //
      BasicFloatSpan(Values& values)
      : BasicFloatSpan(MatrixSpan<Like<float>>(values)) {}
  template <typename Values>
  requires(std::is_convertible_v<const Values&, std::span<Like<float>>>)  //
      BasicFloatSpan(const Values& values)
      : BasicFloatSpan(MatrixSpan<Like<float>>(values)) {}
  // Converts a mutable view to a read-only one.
  template <typename U>
  requires(std::is_same_v<const U, Address>) BasicFloatSpan(const BasicFloatSpan<U>& other)
      : data(other.data),
        rows(other.rows),
        cols(other.cols),
        stride(other.stride),
        place(other.place),
        element(other.element) {}

  // The number of elements, the shape, whether the rows have no gaps between them, the bytes of an element and of all
  // elements, and whether the memory holds codes of bf16.
  size_t Elements() const { return rows * cols; }
  MatrixShape Shape() const { return {rows, cols}; }
  bool Contiguous() const { return stride == cols || rows <= 1; }
  size_t ElementBytes() const { return BytesOf(element, place); }
  size_t Bytes() const { return Elements() * ElementBytes(); }
  bool IsBf16Memory() const { return ElementBytes() == 2; }

  // Returns the matrix as float32 in memory. Throws Error if it is memory of bf16.
  MatrixSpan<Like<float>> Float32() const { return Typed<Like<float>>(); }
  // Returns the matrix as codes of bf16 in memory. Throws Error unless it is memory of bf16.
  MatrixSpan<Like<uint16_t>> Bf16() const { return Typed<Like<uint16_t>>(); }

 private:
  template <typename T>
  MatrixSpan<T> Typed() const {
    NUMSIM_REQUIRE(sizeof(T) == ElementBytes(),
                   "a matrix of floats of {} bytes on the {} is read as one of {} bytes",
                   ElementBytes(),
                   ToString(place),
                   sizeof(T));
    return {static_cast<T*>(data), rows, cols, stride, place};
  }
};
// A view of floats that may be written, and a read-only one.
using FloatSpan = BasicFloatSpan<void>;
using ConstFloatSpan = BasicFloatSpan<const void>;

// Throws Error "FUNCTION: rows ..." unless the matrix has no gaps between its rows.
inline void RequireContiguous(ConstFloatSpan matrix, const char* function) {
  NUMSIM_REQUIRE(matrix.Contiguous(),
                 "{}: rows {} elements apart, expected {}",
                 function,
                 matrix.stride,
                 matrix.cols);
}

// Owns the memory of one matrix of floats at a time, as Buffer does.
class FloatBuffer {
 public:
  explicit FloatBuffer(Place place = {}, Element element = Element::kFloat32)
      : memory_(place), element_(element) {}

  // The place of the memory and the element type.
  Place place() const { return memory_.place(); }
  Element element() const { return element_; }
  // Makes it a buffer of such elements at that place, empty unless it was one. Its memory stays if it
  // is at that place.
  void EnsureAt(Place place, Element element) {
    if (memory_.place() == place && element_ == element) return;
    memory_.EnsureAt(place);
    element_ = element;
    shape_ = {};
  }
  // Returns a contiguous view of rows x cols elements, whose values are undefined. Allocates only if
  // the current memory is too small.
  FloatSpan Renew(size_t rows, size_t cols) {
    shape_ = {rows, cols};
    memory_.Renew(rows, cols * BytesOf(element_, place()));
    return View();
  }
  // Returns the view of the last Renew.
  FloatSpan View() { return {memory_.View().data, shape_, place(), element_}; }
  ConstFloatSpan View() const { return {memory_.View().data, shape_, place(), element_}; }
  // As Buffer::Borrow.
  void Borrow(MatrixSpan<uint8_t> memory) { memory_.Borrow(memory); }

 private:
  Buffer<uint8_t> memory_;
  MatrixShape shape_;
  Element element_;
};

// Copies a contiguous matrix to another one with as many elements and the same Element, between the
// host and a device or within one place. Returns when host memory may be read or used again. Throws
// Error for other matrices, and for two contexts of a device.
void CopyFloats(ConstFloatSpan from, FloatSpan to);

// Returns the elements of a contiguous matrix in host memory, as float32. Waits for the device.
std::vector<float> ToVector(ConstFloatSpan matrix);

}  // namespace numsim
