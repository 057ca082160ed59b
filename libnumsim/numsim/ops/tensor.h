// Matrices of float32 or float64 that training works on: views, and buffers that own memory.
//
// The operations in this directory take views. A view records where its data are stored, and the
// operation runs there, so layers and models (linear/, models/) need not mention it. All operations
// exist on the host. None exists on a device yet; calling one with device data throws Error.
//
// Rules of all operations: The shapes named in a comment are required; other shapes throw Error.
// Outputs are the last parameters and do not overlap inputs unless stated. Results depend only on
// the arguments, not on the number of threads or the SIMD target, because the shapes determine the
// order of every sum. NaN and infinities propagate as in IEEE 754. Operations allocate nothing,
// except each thread's scratch memory on first use. Each operation exists for float and double (the
// T of a template is one of these). float64 is for tests and reference runs and is not tuned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>

#include "numsim/base/require.h"

namespace numsim {

// The memory in which the data of a view are stored.
enum class Place : uint8_t { kHost, kDevice };

// A view of a row-major matrix owned by somebody else. A vector is a matrix with one row.
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
  // Converts a mutable view to a read-only one.
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
  // Returns a view of the same elements with another shape. Requires Contiguous() and the same
  // number of elements.
  MatrixSpan As(size_t new_rows, size_t new_cols) const {
    NUMSIM_REQUIRE(Contiguous() && new_rows * new_cols == Elements(),
                   "As: {} x {} of a {} x {} matrix with stride {}",
                   new_rows,
                   new_cols,
                   rows,
                   cols,
                   stride);
    return {data, new_rows, new_cols, new_cols, place};
  }
  // Returns all elements as a span. Requires a contiguous matrix on the host.
  std::span<T> Span() const {
    NUMSIM_REQUIRE(Contiguous() && place == Place::kHost,
                   "Span: {} x {} elements with stride {} on the {}",
                   rows,
                   cols,
                   stride,
                   place == Place::kHost ? "host" : "device");
    return {data, Elements()};
  }
};

// An input of an operation. T is deduced from the output, not from the input.
template <typename T>
using In = MatrixSpan<const std::type_identity_t<T>>;
using IndexRef = MatrixSpan<const int32_t>;  // a column of indices: rows x 1

// Owns the memory of one matrix at a time, aligned to 64 bytes. The memory grows and never shrinks.
template <typename T>
class Buffer {
 public:
  explicit Buffer(Place place = Place::kHost);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  // Returns a contiguous view of rows x cols elements. Existing elements keep their values in
  // memory order; further elements are uninitialised. Allocates only if the current memory is too
  // small.
  MatrixSpan<T> Resize(size_t rows, size_t cols);
  // Returns the view of the last Resize.
  MatrixSpan<T> View() const { return view_; }

 private:
  MatrixSpan<T> view_;
  size_t capacity_ = 0;
};

// Throws Error "OPERATION has no kernel for a device yet" unless all places are the host.
void RequireHost(const char* operation, std::initializer_list<Place> places);

}  // namespace numsim
