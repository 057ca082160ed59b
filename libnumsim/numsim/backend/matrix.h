// Matrices in the memory of the host or of a device: views, and buffers that own memory.
//
// Operations take views. A view records where its data are stored, and the operation runs there, so
// layers and models need not mention it. What an operation needs on a device besides its arguments
// (a stream, scratch memory, handles of libraries) it finds from the view, in DeviceContext.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <span>
#include <type_traits>
#include <vector>

#include "numsim/base/matrix_shape.h"
#include "numsim/base/require.h"

namespace numsim {

class DeviceContext;
class DeviceStream;

// The memory in which data are stored: the host's, or that of a device, used in the order of the
// context's stream. The context must outlive the place.
class Place {
 public:
  constexpr Place() = default;  // the host
  explicit constexpr Place(DeviceContext& context) : context_(&context) {}

  constexpr bool IsHost() const { return context_ == nullptr; }
  // Require a device; throw Error on the host.
  DeviceContext& Context() const;
  DeviceStream& Stream() const;

  friend constexpr bool operator==(const Place&, const Place&) = default;

 private:
  DeviceContext* context_ = nullptr;
};

// Returns "host" or "device".
const char* ToString(Place place);

// How the elements of a matrix of float lie in memory: as float32, or as the 16 upper bits of it.
// On the host always as float32. Matrices of other types ignore it.
enum class Element : uint8_t { kFloat32, kBfloat16 };
constexpr size_t BytesOf(Element element) { return element == Element::kFloat32 ? 4 : 2; }

// A view of a row-major matrix owned by somebody else. A vector is a matrix with one row. If
// `element` is kBfloat16, `data` points to codes of bf16 and is not to be read as T.
template <typename T>
struct MatrixSpan {
  T* data = nullptr;
  size_t rows = 0, cols = 0;
  size_t stride = 0;  // elements from one row to the next, >= cols
  Place place;
  Element element = Element::kFloat32;

  MatrixSpan() = default;
  MatrixSpan(T* begin,
             size_t height,
             size_t length,
             size_t step,
             Place where = {},
             Element stored = Element::kFloat32)
      : data(begin), rows(height), cols(length), stride(step), place(where), element(stored) {}
  MatrixSpan(T* begin, size_t height, size_t length) : MatrixSpan(begin, height, length, length) {}
  // A contiguous matrix.
  MatrixSpan(T* begin, MatrixShape shape, Place where = {}, Element stored = Element::kFloat32)
      : MatrixSpan(begin, shape.rows, shape.cols, shape.cols, where, stored) {}
  // Converts a mutable view to a read-only one.
  template <typename U>
  requires(std::is_same_v<const U, T>) MatrixSpan(const MatrixSpan<U>& other)
      : MatrixSpan(other.data, other.rows, other.cols, other.stride, other.place, other.element) {}

  size_t Elements() const { return rows * cols; }
  MatrixShape Shape() const { return {rows, cols}; }
  bool Contiguous() const { return stride == cols || rows <= 1; }
  size_t ElementBytes() const {
    return std::is_same_v<const T, const float> ? BytesOf(element) : sizeof(T);
  }
  size_t Bytes() const { return Elements() * ElementBytes(); }
  // Requires elements that are stored as T, as on the host.
  T* Row(size_t row) const { return data + row * stride; }
  MatrixSpan Rows(size_t begin, size_t count) const {
    return {Advanced(begin * stride), count, cols, stride, place, element};
  }
  MatrixSpan Columns(size_t begin, size_t count) const {
    return {Advanced(begin), rows, count, stride, place, element};
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
    return {data, new_rows, new_cols, new_cols, place, element};
  }
  // Returns all elements as a span. Requires a contiguous matrix on the host.
  std::span<T> Span() const {
    NUMSIM_REQUIRE(Contiguous() && place.IsHost() && ElementBytes() == sizeof(T),
                   "Span: {} x {} elements with stride {} on the {}",
                   rows,
                   cols,
                   stride,
                   ToString(place));
    return {data, Elements()};
  }

 private:
  T* Advanced(size_t elements) const {
    if (element == Element::kFloat32 || !std::is_same_v<const T, const float>) {
      return data + elements;
    }
    using Code = std::conditional_t<std::is_const_v<T>, const uint16_t, uint16_t>;
    return reinterpret_cast<T*>(reinterpret_cast<Code*>(data) + elements);
  }
};

// An input of an operation. T is deduced from the output, not from the input.
template <typename T>
using In = MatrixSpan<const std::type_identity_t<T>>;
using IndexRef = MatrixSpan<const int32_t>;  // a column of indices: rows x 1

// Returns a contiguous view of float32 values, or of bf16 codes, at an address of that place.
inline MatrixSpan<float> FloatMatrix(void* data, Element element, MatrixShape shape, Place place) {
  return {static_cast<float*>(data), shape, place, element};
}
inline MatrixSpan<const float> FloatMatrix(const void* data,
                                           Element element,
                                           MatrixShape shape,
                                           Place place) {
  return {static_cast<const float*>(data), shape, place, element};
}

// Returns contiguous host values, in a vector or span that outlives the view, as a matrix. Throws
// Error if their number is not that of the shape.
template <std::ranges::borrowed_range Values>
auto HostMatrix(Values&& values, MatrixShape shape) {
  const std::span view(values);
  RequireSize(view.size(), shape, "HostMatrix", "values");
  return MatrixSpan<typename decltype(view)::element_type>(view.data(), shape);
}

// Owns the memory of one matrix at a time, at a place: aligned to 64 bytes on the host, to 256 on a
// device. The memory grows and never shrinks. A copy has memory of its own. After
// Buffer b = std::move(a), a is empty and can be used again; b = std::move(a) exchanges the two.
template <typename T>
class Buffer {
 public:
  Buffer() : Buffer(Place()) {}
  // `element` other than kFloat32 requires a T of float and a device.
  explicit Buffer(Place place, Element element = Element::kFloat32);
  ~Buffer();
  Buffer(const Buffer& other);
  Buffer& operator=(const Buffer& other);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  Place place() const { return view_.place; }
  // Replaces the buffer by an empty one, unless it is at that place and stores floats like that.
  void EnsureAt(Place place, Element element = Element::kFloat32) {
    if (view_.place == place && view_.element == element) return;
    *this = Buffer(place, element);
  }
  // Returns a contiguous view of rows x cols elements. Existing elements keep their values in
  // memory order; further elements are uninitialised. Allocates only if the current memory is too
  // small.
  MatrixSpan<T> Resize(size_t rows, size_t cols);
  // Returns the view of the last Resize.
  MatrixSpan<T> View() { return view_; }
  MatrixSpan<const T> View() const { return view_; }
  // Returns the elements. Requires the host.
  std::span<T> Span() { return view_.Span(); }
  std::span<const T> Span() const { return View().Span(); }

 private:
  MatrixSpan<T> view_;
  size_t capacity_ = 0;
};

// Copies a contiguous matrix to another one with as many elements of the same size, between the
// host and a device or within one place. Returns when host memory may be read or used again. Throws
// Error for other matrices, and for two contexts of a device.
template <typename T>
void CopyMatrix(In<T> from, MatrixSpan<T> to);

// Returns a buffer at that place with the elements of a contiguous matrix, under the conditions of
// CopyMatrix.
template <typename T>
Buffer<std::remove_const_t<T>> CopyAt(MatrixSpan<T> from, Place place) {
  using Value = std::remove_const_t<T>;
  Buffer<Value> to(place, from.element);
  CopyMatrix<Value>(from, to.Resize(from.rows, from.cols));
  return to;
}

// Returns the elements of a contiguous matrix in host memory, those of bf16 as float32. Waits for
// the device.
std::vector<float> ToVector(MatrixSpan<const float> matrix);

// Throws Error "OPERATION has no kernel for a device yet" unless all places are the host.
void RequireHost(const char* operation, std::initializer_list<Place> places);

}  // namespace numsim
