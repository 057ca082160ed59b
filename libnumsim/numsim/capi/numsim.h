// The C interface of numsim: bit-exact conversion, arithmetic, quantisation and matrix products in
// small number formats. C99 or later, C++. `pkg-config --cflags --libs numsim`; docs/c-abi.md has
// examples.
//
// Status     Functions that can fail return a status: NUMSIM_OK or one of NUMSIM_ERROR_*. On an
//            error no output is written, but for the message. No function throws or aborts on any
//            argument; memory behind a pointer must be as large as stated, that alone cannot be
//            checked. The array functions need a little memory, numsim_gemm several times its
//            matrices; they abort if there is none.
// Threads    Every function may be called from several threads at once. There is no global state:
//            a result depends on the arguments alone. The array functions use the threads of
//            OpenMP (OMP_NUM_THREADS); their results do not depend on the number of threads. A
//            process that called one should not call one again in a child made by fork().
// Bits       Numbers go in and come out as bit patterns: float32 as uint32_t, float64 as uint64_t,
//            a code in the low bits of a uint32_t with all higher bits clear. Arrays of float are
//            read and written as they are.
// Float unit Integers only, so the caller's floating-point environment changes nothing, with two
//            exceptions that assume the default environment: numsim_gemm, and the products with a
//            scale in the quantise functions, which are float32 products.
// Strings    Returned strings are constants that live as long as the library.
//
// Rules of rounding, overflow and special values: docs/rounding.md. Formats: docs/formats.md.
#ifndef NUMSIM_CAPI_NUMSIM_H_
#define NUMSIM_CAPI_NUMSIM_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define NUMSIM_API __attribute__((visibility("default")))
#else
#define NUMSIM_API
#endif
#ifdef __cplusplus
#define NUMSIM_NOEXCEPT noexcept
extern "C" {
#else
#define NUMSIM_NOEXCEPT
#endif

// ---- Version and status ----

// Grows when a function or struct changes incompatibly; also the number in libnumsim.so.N.
#define NUMSIM_ABI_VERSION 1

// NUMSIM_ABI_VERSION of the library that runs.
NUMSIM_API int numsim_abi_version(void) NUMSIM_NOEXCEPT;
// "0.1.0", and the same as 10000 * major + 100 * minor + patch.
NUMSIM_API const char* numsim_version(void) NUMSIM_NOEXCEPT;
NUMSIM_API int numsim_version_number(void) NUMSIM_NOEXCEPT;

typedef int numsim_status_t;
enum {
  NUMSIM_OK = 0,
  NUMSIM_ERROR_BAD_ARGUMENT = 1,     // null or misaligned pointer, size, count, enumerator
  NUMSIM_ERROR_UNKNOWN_FORMAT = 2,   // neither a name nor a valid custom text
  NUMSIM_ERROR_BAD_FORMAT = 3,       // a numsim_format_t that no numsim_format_by_name made
  NUMSIM_ERROR_BAD_ROUNDING = 4,     // a field of numsim_rounding_t out of range
  NUMSIM_ERROR_BAD_CODE = 5,         // bits above the format's width are set
  NUMSIM_ERROR_OVERLAP = 6,          // an output overlaps an input or another output
  NUMSIM_ERROR_UNKNOWN_PROFILE = 7,  // no profile of that name
  NUMSIM_ERROR_UNSUPPORTED = 8,      // the profile does not define this conversion
  NUMSIM_ERROR_OUT_OF_MEMORY = 9,
  NUMSIM_ERROR_INTERNAL = 10,            // a defect of numsim
  NUMSIM_ERROR_UNKNOWN_ACCUMULATOR = 11  // neither a name nor a accumulation mode
};

// One line in English. Any other number: "unknown status".
NUMSIM_API const char* numsim_status_text(numsim_status_t status) NUMSIM_NOEXCEPT;

// ---- Formats ----

// A format as plain data: copy it freely. Filled by numsim_format_by_name; every function checks
// it. The fields are those of FormatSpec (numsim/formats/format_spec.h); `reserved` is 0.
typedef struct numsim_format_t {
  int8_t exponent_bits;
  int8_t mantissa_bits;
  int16_t bias;
  uint8_t sign;
  uint8_t zero;
  uint8_t infinity;
  uint8_t nan;
  uint8_t overflow_to;
  int8_t subnormal_shift;
  uint8_t reserved[6];
} numsim_format_t;

// Fills `format` from a name of the table ("e4m3fn") or a custom text ("e5m3:bias=20").
// `message`, unless NULL, receives why it failed, in at most message_size bytes with the final 0;
// an empty text on success. NUMSIM_ERROR_UNKNOWN_FORMAT when the text names no valid format.
NUMSIM_API numsim_status_t numsim_format_by_name(const char* name,
                                                 numsim_format_t* format,
                                                 char* message,
                                                 size_t message_size) NUMSIM_NOEXCEPT;

// Number of named formats; the name of one, in the order of docs/formats.md, or NULL from
// numsim_format_count() on.
NUMSIM_API size_t numsim_format_count(void) NUMSIM_NOEXCEPT;
NUMSIM_API const char* numsim_format_name(size_t index) NUMSIM_NOEXCEPT;

// Writes the text that numsim_format_by_name reads back to `format`. 128 bytes are enough for any;
// NUMSIM_ERROR_BAD_ARGUMENT when text_size is too small.
NUMSIM_API numsim_status_t numsim_format_text(const numsim_format_t* format,
                                              char* text,
                                              size_t text_size) NUMSIM_NOEXCEPT;

typedef struct numsim_format_info_t {
  int32_t bits;           // width of a code, 2 to 32
  int32_t storage_bytes;  // smallest element of an array of codes: 1, 2 or 4
  int32_t is_signed;      // 0 or 1, as the next two
  int32_t has_infinity;
  int32_t has_nan;
  uint32_t max_finite_code;    // of the largest finite value
  uint32_t infinity_code;      // +infinity; 0 without infinities
  uint32_t nan_code;           // canonical NaN, sign bit clear where it has one; 0 without NaN
  uint32_t max_finite_bits;    // float32 bits of the largest finite value,
  uint32_t min_normal_bits;    // of the smallest positive normal value (0: it has none)
  uint32_t min_positive_bits;  // and of the smallest positive value
  int32_t reserved;            // 0
} numsim_format_info_t;

NUMSIM_API numsim_status_t numsim_format_info(const numsim_format_t* format,
                                              numsim_format_info_t* info) NUMSIM_NOEXCEPT;

// ---- Rounding ----

enum {                            // mode
  NUMSIM_ROUND_NEAREST_EVEN = 0,  // ties to the even code
  NUMSIM_ROUND_NEAREST_AWAY = 1,  // ties away from zero
  NUMSIM_ROUND_TOWARD_ZERO = 2,
  NUMSIM_ROUND_UP = 3,      // toward +infinity
  NUMSIM_ROUND_DOWN = 4,    // toward -infinity
  NUMSIM_ROUND_TO_ODD = 5,  // inexact results take the neighbour with the odd code
  NUMSIM_ROUND_STOCHASTIC = 6
};
enum {  // variant of stochastic rounding, docs/rounding.md
  NUMSIM_STOCHASTIC_A = 0,
  NUMSIM_STOCHASTIC_B = 1,
  NUMSIM_STOCHASTIC_C = 2
};
enum {                              // overflow: what becomes of
  NUMSIM_OVERFLOW_NONSATURATE = 0,  // a finite overflow: infinity, else NaN, else the largest value
  NUMSIM_OVERFLOW_SATURATE = 1,     // finite overflow and infinity: the largest value
  NUMSIM_OVERFLOW_PROPAGATE = 2     // finite overflow: the largest value; infinity stays
};
enum {  // tininess: when NUMSIM_UNDERFLOW is raised. No code depends on it.
  NUMSIM_TININESS_AFTER_ROUNDING = 0,
  NUMSIM_TININESS_BEFORE_ROUNDING = 1
};

// All zero is the default. A null pointer where a numsim_rounding_t is asked for means the default
// too.
typedef struct numsim_rounding_t {
  int32_t mode;
  int32_t variant;      // read only in NUMSIM_ROUND_STOCHASTIC, as random_bits
  int32_t random_bits;  // N, 1 to 32
  int32_t overflow;
  int32_t tininess;
  int32_t reserved[3];  // 0
} numsim_rounding_t;

// Nearest even, not saturating, tininess after rounding; variant A with 32 bits once the mode is
// changed to stochastic.
NUMSIM_API numsim_rounding_t numsim_rounding_default(void) NUMSIM_NOEXCEPT;

// Flags, an OR of these bits: those of Berkeley SoftFloat.
enum {
  NUMSIM_INEXACT = 0x01,
  NUMSIM_UNDERFLOW = 0x02,
  NUMSIM_OVERFLOW = 0x04,
  NUMSIM_DIVIDE_BY_ZERO = 0x08,
  NUMSIM_INVALID = 0x10
};

// ---- Conversion of one number ----
//
// `random` is R of stochastic rounding, in the low random_bits bits; higher bits are ignored, and
// all of it in other modes. `flags` may be NULL everywhere.
// NaN: the format's canonical NaN, of the same sign where the format has NaNs of both signs; a
// format without NaN gives its largest value (NUMSIM_INVALID).

NUMSIM_API numsim_status_t numsim_encode_f32(uint32_t value_bits,
                                             const numsim_format_t* to,
                                             const numsim_rounding_t* rounding,
                                             uint32_t random,
                                             uint32_t* code,
                                             uint8_t* flags) NUMSIM_NOEXCEPT;
NUMSIM_API numsim_status_t numsim_encode_f64(uint64_t value_bits,
                                             const numsim_format_t* to,
                                             const numsim_rounding_t* rounding,
                                             uint32_t random,
                                             uint32_t* code,
                                             uint8_t* flags) NUMSIM_NOEXCEPT;

// The value of a code, exactly. NaN codes give a quiet NaN of their sign. The unused code of int8
// (0x80) gives -128.
NUMSIM_API numsim_status_t numsim_decode_f32(const numsim_format_t* format,
                                             uint32_t code,
                                             uint32_t* value_bits) NUMSIM_NOEXCEPT;
NUMSIM_API numsim_status_t numsim_decode_f64(const numsim_format_t* format,
                                             uint32_t code,
                                             uint64_t* value_bits) NUMSIM_NOEXCEPT;

// R for the element `index` of a stream: what the array functions draw. 1 <= bits <= 32.
NUMSIM_API numsim_status_t numsim_random_bits(
    uint64_t seed, uint64_t stream, uint64_t index, int bits, uint32_t* random) NUMSIM_NOEXCEPT;

// ---- Arithmetic on one, two or three codes ----
//
// Each operand has a format of its own, the result the format `to`. Every result is the exact value
// rounded once. A NaN operand or an invalid operation gives the canonical NaN with the sign bit
// clear (a format without NaN: its largest value). Infinities and signs of zero as in IEEE 754.

// a + b, a - b, a * b, a / b.
NUMSIM_API numsim_status_t numsim_add(const numsim_format_t* a_format,
                                      uint32_t a,
                                      const numsim_format_t* b_format,
                                      uint32_t b,
                                      const numsim_format_t* to,
                                      const numsim_rounding_t* rounding,
                                      uint32_t random,
                                      uint32_t* code,
                                      uint8_t* flags) NUMSIM_NOEXCEPT;
NUMSIM_API numsim_status_t numsim_subtract(const numsim_format_t* a_format,
                                           uint32_t a,
                                           const numsim_format_t* b_format,
                                           uint32_t b,
                                           const numsim_format_t* to,
                                           const numsim_rounding_t* rounding,
                                           uint32_t random,
                                           uint32_t* code,
                                           uint8_t* flags) NUMSIM_NOEXCEPT;
NUMSIM_API numsim_status_t numsim_multiply(const numsim_format_t* a_format,
                                           uint32_t a,
                                           const numsim_format_t* b_format,
                                           uint32_t b,
                                           const numsim_format_t* to,
                                           const numsim_rounding_t* rounding,
                                           uint32_t random,
                                           uint32_t* code,
                                           uint8_t* flags) NUMSIM_NOEXCEPT;
NUMSIM_API numsim_status_t numsim_divide(const numsim_format_t* a_format,
                                         uint32_t a,
                                         const numsim_format_t* b_format,
                                         uint32_t b,
                                         const numsim_format_t* to,
                                         const numsim_rounding_t* rounding,
                                         uint32_t random,
                                         uint32_t* code,
                                         uint8_t* flags) NUMSIM_NOEXCEPT;
// a - n b, n the integer nearest to a / b, ties to even.
NUMSIM_API numsim_status_t numsim_remainder(const numsim_format_t* a_format,
                                            uint32_t a,
                                            const numsim_format_t* b_format,
                                            uint32_t b,
                                            const numsim_format_t* to,
                                            const numsim_rounding_t* rounding,
                                            uint32_t random,
                                            uint32_t* code,
                                            uint8_t* flags) NUMSIM_NOEXCEPT;
// a * b + c.
NUMSIM_API numsim_status_t numsim_fma(const numsim_format_t* a_format,
                                      uint32_t a,
                                      const numsim_format_t* b_format,
                                      uint32_t b,
                                      const numsim_format_t* c_format,
                                      uint32_t c,
                                      const numsim_format_t* to,
                                      const numsim_rounding_t* rounding,
                                      uint32_t random,
                                      uint32_t* code,
                                      uint8_t* flags) NUMSIM_NOEXCEPT;
NUMSIM_API numsim_status_t numsim_sqrt(const numsim_format_t* a_format,
                                       uint32_t a,
                                       const numsim_format_t* to,
                                       const numsim_rounding_t* rounding,
                                       uint32_t random,
                                       uint32_t* code,
                                       uint8_t* flags) NUMSIM_NOEXCEPT;
// The value of `a` in another format. Keeps the sign of a NaN, as numsim_encode_f32.
NUMSIM_API numsim_status_t numsim_convert(const numsim_format_t* a_format,
                                          uint32_t a,
                                          const numsim_format_t* to,
                                          const numsim_rounding_t* rounding,
                                          uint32_t random,
                                          uint32_t* code,
                                          uint8_t* flags) NUMSIM_NOEXCEPT;
// a * 2^n, any n.
NUMSIM_API numsim_status_t numsim_scale(const numsim_format_t* a_format,
                                        uint32_t a,
                                        int64_t n,
                                        const numsim_format_t* to,
                                        const numsim_rounding_t* rounding,
                                        uint32_t random,
                                        uint32_t* code,
                                        uint8_t* flags) NUMSIM_NOEXCEPT;

enum {  // extremum, IEEE 754-2019 9.6 and P3109
  NUMSIM_MINIMUM = 0,
  NUMSIM_MAXIMUM = 1,
  NUMSIM_MINIMUM_NUMBER = 2,  // ..._NUMBER: the other operand where one is NaN
  NUMSIM_MAXIMUM_NUMBER = 3,
  NUMSIM_MINIMUM_MAGNITUDE = 4,
  NUMSIM_MAXIMUM_MAGNITUDE = 5,
  NUMSIM_MINIMUM_MAGNITUDE_NUMBER = 6,
  NUMSIM_MAXIMUM_MAGNITUDE_NUMBER = 7,
  NUMSIM_MINIMUM_FINITE = 8,
  NUMSIM_MAXIMUM_FINITE = 9
};
NUMSIM_API numsim_status_t numsim_extremum(int extremum,
                                           const numsim_format_t* a_format,
                                           uint32_t a,
                                           const numsim_format_t* b_format,
                                           uint32_t b,
                                           const numsim_format_t* to,
                                           const numsim_rounding_t* rounding,
                                           uint32_t random,
                                           uint32_t* code,
                                           uint8_t* flags) NUMSIM_NOEXCEPT;

enum {  // relation
  NUMSIM_LESS = 0,
  NUMSIM_EQUAL = 1,
  NUMSIM_GREATER = 2,
  NUMSIM_UNORDERED = 3  // a NaN with anything
};
// The relation of a to b. -0 equals +0.
NUMSIM_API numsim_status_t numsim_compare(const numsim_format_t* a_format,
                                          uint32_t a,
                                          const numsim_format_t* b_format,
                                          uint32_t b,
                                          int* relation) NUMSIM_NOEXCEPT;

// ---- Arrays ----
//
// An array of codes has elements of code_bytes = 1, 2 or 4 bytes, at least the format's
// storage_bytes. Arrays are aligned to their elements. An array of 0 elements may be NULL. Arrays
// may not overlap unless a function says so.

// Random bits of an array call in stochastic mode. With `words`, R of element i is the low
// random_bits bits of words[i]. With words == NULL it is numsim_random_bits(seed, stream,
// first_index + i, random_bits). Other modes do not read it: NULL will do.
typedef struct numsim_random_t {
  const uint32_t* words;
  uint64_t seed;
  uint64_t stream;
  uint64_t first_index;  // first_index + n may not exceed 2^64 - 1
} numsim_random_t;

// codes[i] = code of in[i].
NUMSIM_API numsim_status_t numsim_encode_array_f32(const float* in,
                                                   size_t n,
                                                   const numsim_format_t* to,
                                                   const numsim_rounding_t* rounding,
                                                   const numsim_random_t* random,
                                                   void* codes,
                                                   int code_bytes) NUMSIM_NOEXCEPT;
NUMSIM_API numsim_status_t numsim_encode_array_f64(const double* in,
                                                   size_t n,
                                                   const numsim_format_t* to,
                                                   const numsim_rounding_t* rounding,
                                                   const numsim_random_t* random,
                                                   void* codes,
                                                   int code_bytes) NUMSIM_NOEXCEPT;
// out[i] = value of codes[i]. Bits of an element above the format's width are ignored.
NUMSIM_API numsim_status_t numsim_decode_array_f32(const numsim_format_t* format,
                                                   const void* codes,
                                                   int code_bytes,
                                                   size_t n,
                                                   float* out) NUMSIM_NOEXCEPT;

enum {  // operation
  NUMSIM_OPERATION_ADD = 0,
  NUMSIM_OPERATION_SUBTRACT = 1,
  NUMSIM_OPERATION_MULTIPLY = 2,
  NUMSIM_OPERATION_DIVIDE = 3,
  NUMSIM_OPERATION_FMA = 4,
  NUMSIM_OPERATION_SQRT = 5
};
typedef struct numsim_codes_t {
  numsim_format_t format;
  const void* codes;  // n elements; bits above the format's width are ignored
  int32_t code_bytes;
  int32_t reserved;  // 0
} numsim_codes_t;
// out[i] = operation(a[i], b[i], c[i]), bit for bit as the functions above. Operands that the
// operation does not have are NULL. `out` may be the codes of an operand where their code_bytes are
// equal.
// flags, unless NULL: flags[i] = flags of element i. all_flags, unless NULL: the OR of all.
NUMSIM_API numsim_status_t numsim_arithmetic_array(int operation,
                                                   const numsim_codes_t* a,
                                                   const numsim_codes_t* b,
                                                   const numsim_codes_t* c,
                                                   size_t n,
                                                   const numsim_format_t* to,
                                                   const numsim_rounding_t* rounding,
                                                   const numsim_random_t* random,
                                                   void* out,
                                                   int out_bytes,
                                                   uint8_t* flags,
                                                   uint8_t* all_flags) NUMSIM_NOEXCEPT;

// ---- Matrices with scales ----
//
// Matrices are row-major, rows x cols. A layout says which elements share a scale.

enum {                      // granularity
  NUMSIM_SCALE_TENSOR = 0,  // one scale
  NUMSIM_SCALE_ROW = 1,     // one a row
  NUMSIM_SCALE_COLUMN = 2,  // one a column
  NUMSIM_SCALE_BLOCK = 3    // one for `block` consecutive elements of a row; row by row
};
typedef struct numsim_scale_layout_t {
  int32_t granularity;
  int32_t reserved;  // 0
  uint64_t block;    // >= 1; read only under NUMSIM_SCALE_BLOCK
} numsim_scale_layout_t;

// Number of scales of a rows x cols matrix.
NUMSIM_API numsim_status_t numsim_scale_count(const numsim_scale_layout_t* layout,
                                              size_t rows,
                                              size_t cols,
                                              size_t* count) NUMSIM_NOEXCEPT;
// absmax[s] = the largest |x| over the finite elements that share scale s; 0 if there are none.
NUMSIM_API numsim_status_t numsim_absmax(const float* in,
                                         size_t rows,
                                         size_t cols,
                                         const numsim_scale_layout_t* layout,
                                         float* absmax) NUMSIM_NOEXCEPT;
// codes(r, c) = code of in(r, c) * inv_scale, the product rounded to float32. The random bits are
// those of element r * cols + c. With transpose != 0 the codes are stored as a cols x rows matrix.
NUMSIM_API numsim_status_t numsim_quantize(const float* in,
                                           size_t rows,
                                           size_t cols,
                                           const numsim_scale_layout_t* layout,
                                           const float* inv_scales,
                                           const numsim_format_t* to,
                                           const numsim_rounding_t* rounding,
                                           const numsim_random_t* random,
                                           int transpose,
                                           void* codes,
                                           int code_bytes) NUMSIM_NOEXCEPT;
// out(r, c) = value of codes(r, c) * scale, the product rounded to float32. Not transposed.
NUMSIM_API numsim_status_t numsim_dequantize(const numsim_format_t* format,
                                             const void* codes,
                                             int code_bytes,
                                             size_t rows,
                                             size_t cols,
                                             const numsim_scale_layout_t* layout,
                                             const float* scales,
                                             float* out) NUMSIM_NOEXCEPT;

// ---- Products of matrices ----
//
// A B^T in float32 by a stated accumulation mode, among them those of the tensor cores of GPUs.
// docs/oracle.md, "Dot products", explains the rules. Their texts are "exact", "fp64", a format
// ("fp32": a fused multiply-add for each product in turn), a format with ":unfused",
// "fp32-chunked:N", "trunc:F,CHUNK", "trunc:F,CHUNK,PROMOTE", and the names of
// numsim_accumulator_info ("hopper-fp8"). Rule "library" is not offered here.

// A factor: vectors of `inner` elements, stored vectors x inner, or inner x vectors if `transposed`
// is not 0. An element is worth its value times its scale.
typedef struct numsim_factor_t {
  numsim_format_t format;
  const void* codes;   // bits above the format's width are ignored; floats are codes of fp32
  int32_t code_bytes;  // 1, 2 or 4, as of arrays
  int32_t transposed;
  const float* scales;           // NULL: none, `layout` is not read
  numsim_scale_layout_t layout;  // of the vectors x inner matrix, however it is stored
} numsim_factor_t;

// out(i, j) = sum over k of a(i, k) b(j, k): rows x cols, row-major. `a` is `rows` vectors, `b`
// `cols` vectors. The products of values are exact and their sum S follows the rule. Then
//   out = float32(float64(S * (scale of a * scale of b))),    S = 0 if inner is 0.
// A factor with NUMSIM_SCALE_BLOCK cuts the inner dimension into its blocks, NUMSIM_SCALE_COLUMN
// into single elements. Each segment is a product of its own, and `out` their sum in float32 from
// the first to the last. Where both factors do so their blocks are of one length; a block of at
// least `inner` elements is one scale for each vector.
// Any NaN is 0x7FFFFFFF under "trunc" and names that are such rules, otherwise 0x7FC00000.
// NUMSIM_ERROR_UNKNOWN_ACCUMULATOR for another text. `message` as in numsim_format_by_name.
NUMSIM_API numsim_status_t numsim_gemm(const numsim_factor_t* a,
                                       const numsim_factor_t* b,
                                       size_t rows,
                                       size_t cols,
                                       size_t inner,
                                       const char* accumulator,
                                       float* out,
                                       char* message,
                                       size_t message_size) NUMSIM_NOEXCEPT;

// A named rule: what a device was found to do.
typedef struct numsim_accumulator_info_t {
  const char* name;      // "hopper-fp8"
  const char* rule;      // "trunc:13,32,128", or words where no such text says it
  const char* operands;  // formats, for reading: "e4m3fn, e5m2"
  const char* source;    // entry of docs/references.md
  const char* note;      // one line
  int32_t measured;      // 1: by this project on the device, bit for bit; 0: reported by others
  int32_t reserved;      // 0
} numsim_accumulator_info_t;

// Number of named rules; the rule `index`. NUMSIM_ERROR_BAD_ARGUMENT from
// numsim_accumulator_count() on.
NUMSIM_API size_t numsim_accumulator_count(void) NUMSIM_NOEXCEPT;
NUMSIM_API numsim_status_t numsim_accumulator_info(size_t index,
                                                   numsim_accumulator_info_t* info) NUMSIM_NOEXCEPT;

// ---- Profiles: the conversions of other implementations ----
//
// `numsim oracle profiles` lists them. Beside the names of that list, "p3109-a:8" is p3109-a (b, c)
// with 8 random bits, and "rule:rtz,saturate" numsim's own rule for any target. A profile is
// defined for some source types and targets; any other is NUMSIM_ERROR_UNSUPPORTED, with a message
// as in numsim_format_by_name.

enum {  // source type
  NUMSIM_FLOAT32 = 0,
  NUMSIM_FLOAT64 = 1
};

// Number of profiles; the name of one, or NULL from numsim_profile_count() on.
NUMSIM_API size_t numsim_profile_count(void) NUMSIM_NOEXCEPT;
NUMSIM_API const char* numsim_profile_name(size_t index) NUMSIM_NOEXCEPT;

// How many low bits of `random` or of a random word the conversion reads; 0 if it is deterministic.
NUMSIM_API numsim_status_t numsim_profile_random_bits(const char* profile,
                                                      int source_type,
                                                      const numsim_format_t* to,
                                                      int* bits,
                                                      char* message,
                                                      size_t message_size) NUMSIM_NOEXCEPT;
// value_bits: a float32 in the low 32 bits with the rest clear, or a float64.
NUMSIM_API numsim_status_t numsim_profile_encode(const char* profile,
                                                 int source_type,
                                                 uint64_t value_bits,
                                                 const numsim_format_t* to,
                                                 uint32_t random,
                                                 uint32_t* code,
                                                 char* message,
                                                 size_t message_size) NUMSIM_NOEXCEPT;
// in: n elements of float or double, by source_type. `random` is read by stochastic profiles.
NUMSIM_API numsim_status_t numsim_profile_encode_array(const char* profile,
                                                       int source_type,
                                                       const void* in,
                                                       size_t n,
                                                       const numsim_format_t* to,
                                                       const numsim_random_t* random,
                                                       void* codes,
                                                       int code_bytes,
                                                       char* message,
                                                       size_t message_size) NUMSIM_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif  // NUMSIM_CAPI_NUMSIM_H_
