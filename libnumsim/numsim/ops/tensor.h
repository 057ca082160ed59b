// Matrices of float32 or float64 that training works on: views, and buffers that own them.
//
// Operations of this directory take views. Each of them says where its data lie, and an operation
// runs there, so that layers and models (linear/, models/) name no place. All of them exist on the host; on a
// device none does yet, and one that is asked for throws Error.
//
// Rules of all operations: the shapes named in a comment are required. Outputs stand last and do
// not overlap inputs unless said. Results depend on the arguments alone, not on threads or SIMD
// target: every sum has an order that the shapes decide. NaN and infinities go through as IEEE 754
// has them. Nothing is allocated, but for a thread's scratch at its first use. Each exists for
// float and double (`template` below stands for these two); float64 is for tests and shadows and is
// not tuned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>

#include "numsim/base/error.h"

namespace numsim {

enum class Place : uint8_t { kHost, kDevice };

// A row-major matrix that somebody else owns; a vector is a matrix of one row.
template <typename T>
struct MatrixSpan {
  T* data = nullptr;
  size_t rows = 0, cols = 0;
  size_t stride = 0;  // elements from one row to the next, >= cols
  Place place = Place::kHost;

  MatrixSpan() = default;
  MatrixSpan(T* begin, size_t height, size_t length, size_t step, Place where = Place::kHost)
      : data(begin), rows(height), cols(length), stride(step), place(where) {}
  MatrixSpan(T* begin, size_t height, size_t length) : MatrixSpan(begin, height, length, length) {}
  // A view to read of one to write.
  template <typename U>
  requires(std::is_same_v<const U, T>) MatrixSpan(const MatrixSpan<U>& other)
      : MatrixSpan(other.data, other.rows, other.cols, other.stride, other.place) {}

  size_t Elements() const { return rows * cols; }
  bool Contiguous() const { return stride == cols || rows <= 1; }
  T* Row(size_t row) const { return data + row * stride; }
  MatrixSpan Rows(size_t begin, size_t count) const {
    return {Row(begin), count, cols, stride, place};
  }
  MatrixSpan Columns(size_t begin, size_t count) const {
    return {data + begin, rows, count, stride, place};
  }
  // The same elements with other extents. Requires Contiguous() and as many elements.
  MatrixSpan As(size_t new_rows, size_t new_cols) const {
    NUMSIM_CHECK(Contiguous() && new_rows * new_cols == Elements(), "{} x {}", new_rows, new_cols);
    return {data, new_rows, new_cols, new_cols, place};
  }
  // All elements. Requires a contiguous matrix on the host.
  std::span<T> Span() const {
    NUMSIM_CHECK(Contiguous() && place == Place::kHost, "{} x {}", rows, cols);
    return {data, Elements()};
  }
};

// An input of an operation: what T is follows from its output.
template <typename T>
using In = MatrixSpan<const std::type_identity_t<T>>;
using IndexRef = MatrixSpan<const int32_t>;  // a column of indices: rows x 1

// Memory of one matrix at a time, at 64-byte boundaries. It grows and never shrinks.
template <typename T>
class Buffer {
 public:
  explicit Buffer(Place place = Place::kHost);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  // A contiguous view of rows x cols elements, whose first elements, in memory order, keep their
  // values and whose others have none yet. Memory is taken only where the old one is too small.
  MatrixSpan<T> Resize(size_t rows, size_t cols);
  // Of the last Resize.
  MatrixSpan<T> View() const { return view_; }

 private:
  MatrixSpan<T> view_;
  size_t capacity_ = 0;
};

// Throws Error "OPERATION has no kernel for a device yet" unless all views lie on the host.
void RequireHost(const char* operation, std::initializer_list<Place> places);

}  // namespace numsim
