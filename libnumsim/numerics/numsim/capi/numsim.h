// The C interface of numsim: bit-exact conversion, arithmetic, quantisation and GEMM in small
// number formats. Works with C99 or later and with C++. Examples: docs/c-abi.md. Compiler flags:
// `pkg-config --cflags --libs numsim`.
//
// Status     Functions that can fail return a status: NUMSIM_OK or one of NUMSIM_ERROR_*. On an
//            error, no output except the message is written. No function throws or aborts because
//            of its arguments. Only one requirement cannot be checked: memory behind a pointer must
//            be as large as stated. The array functions allocate a little memory, numsim_gemm
//            several times the size of its matrices; they abort if there is not enough.
// Threads    Every function may be called from several threads at once. There is no global state: a
//            result depends only on the arguments. The array functions use OpenMP threads
//            (OMP_NUM_THREADS); their results do not depend on the number of threads. After a
//            process has called an array function, a child created by fork() should not call one.
// Bits       Numbers are passed and returned as bit patterns: float32 as uint32_t, float64 as
//            uint64_t, a code in the low bits of a uint32_t with all higher bits clear. Arrays of
//            float are read and written directly.
// Float unit The functions use only integer arithmetic, so the caller's floating-point environment
//            has no effect. The exceptions assume the default environment: the GEMM functions, and
//            those that compute a scale or multiply by one in float32.
// Strings    Returned strings are constants that live as long as the library.
//
// Rounding, overflow and special values: docs/rounding.md. Formats: docs/formats.md.
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

// Increases when a function or struct changes incompatibly; also the number N in libnumsim.so.N.
#define NUMSIM_ABI_VERSION 1

// Returns the NUMSIM_ABI_VERSION of the loaded library.
NUMSIM_API int numsim_abi_version(void) NUMSIM_NOEXCEPT;
// Return the version of the library as text ("0.2.0") and as 10000 * major + 100 * minor + patch.
NUMSIM_API const char* numsim_version(void) NUMSIM_NOEXCEPT;
NUMSIM_API int numsim_version_number(void) NUMSIM_NOEXCEPT;

// The status of a call: NUMSIM_OK or one of NUMSIM_ERROR_*.
typedef int numsim_status_t;
enum {
  NUMSIM_OK = 0,                     // success
  NUMSIM_ERROR_BAD_ARGUMENT = 1,     // null or misaligned pointer, size, count, enumerator
  NUMSIM_ERROR_UNKNOWN_FORMAT = 2,   // neither a name nor a valid custom text
  NUMSIM_ERROR_BAD_FORMAT = 3,       // a numsim_format_t that numsim_format_by_name cannot return
  NUMSIM_ERROR_BAD_ROUNDING = 4,     // a field of numsim_rounding_t is out of range
  NUMSIM_ERROR_BAD_CODE = 5,         // bits above the format's width are set
  NUMSIM_ERROR_OVERLAP = 6,          // an output overlaps an input or another output
  NUMSIM_ERROR_UNKNOWN_PROFILE = 7,  // no profile has that name
  NUMSIM_ERROR_UNSUPPORTED = 8,      // the profile does not define this conversion
  NUMSIM_ERROR_OUT_OF_MEMORY = 9,
  NUMSIM_ERROR_INTERNAL = 10,             // a defect of numsim
  NUMSIM_ERROR_UNKNOWN_ACCUMULATOR = 11,  // neither a name nor a text of an accumulation mode
  NUMSIM_ERROR_ACCUMULATOR_OPERANDS = 12  // the device of that name does not take these operands
};

// Returns a one-line description in English, or "unknown status" for any other number.
NUMSIM_API const char* numsim_status_text(numsim_status_t status) NUMSIM_NOEXCEPT;

// ---- Formats ----

// A format as plain data, which can be copied freely. Fill it with numsim_format_by_name; every
// function checks it. The fields are those of FormatSpec (numsim/formats/format_spec.h). `reserved`
// is 0.
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
  uint8_t full_range;  // 0 or 1, like the next
  uint8_t flush_subnormals;
  uint8_t table;  // number of a table of values in this process, or 0
  uint8_t reserved[3];
} numsim_format_t;

// Fills `format` from the name of a format ("e4m3fn"), also one of torch, CUDA and others
// ("__nv_fp8_e4m3"; docs/formats.md), or from a custom text ("e5m3:bias=20"). Names of tables of
// values ("nf4", "table:FILE") are taken too; such a format is for encoding, decoding, scales and
// quantising, for the result of an operation, and for this process. Elsewhere it is a
// NUMSIM_ERROR_BAD_FORMAT.
// `message`, unless NULL, receives the reason of a failure; on success the note of a name that means
// different formats in different texts, such as "e4m3" (numsim_format_note), and an empty text for
// all other names. At most message_size bytes are written, including the final 0. Returns
// NUMSIM_ERROR_UNKNOWN_FORMAT if the text is not a valid format.
NUMSIM_API numsim_status_t numsim_format_by_name(const char* name,
                                                 numsim_format_t* format,
                                                 char* message,
                                                 size_t message_size) NUMSIM_NOEXCEPT;

// Writes one line about a name that means different formats in different texts, such as "e4m3" and
// "e1m2", and an empty text for every other name. 256 bytes suffice. Returns
// NUMSIM_ERROR_UNKNOWN_FORMAT for a name that numsim_format_by_name refuses, and
// NUMSIM_ERROR_BAD_ARGUMENT if text_size is too small.
NUMSIM_API numsim_status_t numsim_format_note(const char* name,
                                              char* text,
                                              size_t text_size) NUMSIM_NOEXCEPT;

// Return the number of named formats, and the name of format `index` in the order of
// docs/formats.md, or NULL if index >= numsim_format_count().
NUMSIM_API size_t numsim_format_count(void) NUMSIM_NOEXCEPT;
NUMSIM_API const char* numsim_format_name(size_t index) NUMSIM_NOEXCEPT;

// Writes the text from which numsim_format_by_name fills the same `format`. 128 bytes suffice for
// any format. Returns NUMSIM_ERROR_BAD_ARGUMENT if text_size is too small.
NUMSIM_API numsim_status_t numsim_format_text(const numsim_format_t* format,
                                              char* text,
                                              size_t text_size) NUMSIM_NOEXCEPT;

// The properties of a format, which numsim_format_info fills.
typedef struct numsim_format_info_t {
  int32_t bits;           // width of a code, 2 to 32
  int32_t storage_bytes;  // smallest element of an array of codes: 1, 2 or 4
  int32_t is_signed;      // 0 or 1, like the next two
  int32_t has_infinity;
  int32_t has_nan;
  uint32_t max_finite_code;    // code of the largest finite value
  uint32_t infinity_code;      // code of +infinity; 0 if the format has no infinities
  uint32_t nan_code;           // canonical NaN with its sign bit, if any, clear; 0 without NaN
  uint32_t max_finite_bits;    // float32 bits of the largest finite value
  uint32_t min_normal_bits;    // float32 bits of the smallest positive normal value; 0: none
  uint32_t min_positive_bits;  // float32 bits of the smallest positive value
  int32_t reserved;            // 0
} numsim_format_info_t;

// Fills `info` with properties of `format`.
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
enum {  // variant of stochastic rounding; see docs/rounding.md
  NUMSIM_STOCHASTIC_A = 0,
  NUMSIM_STOCHASTIC_B = 1,
  NUMSIM_STOCHASTIC_C = 2
};
enum {                              // overflow: results of finite overflow and of infinities
  NUMSIM_OVERFLOW_NONSATURATE = 0,  // finite overflow: infinity, else NaN, else the largest value
  NUMSIM_OVERFLOW_SATURATE = 1,     // finite overflow and infinity: the largest value
  NUMSIM_OVERFLOW_PROPAGATE = 2     // finite overflow: the largest value; infinity: unchanged
};
enum {  // tininess: when NUMSIM_UNDERFLOW is raised; does not affect codes
  NUMSIM_TININESS_AFTER_ROUNDING = 0,
  NUMSIM_TININESS_BEFORE_ROUNDING = 1
};

// Rounding of a result. A struct of zeros is the default. A null pointer to a numsim_rounding_t
// also stands for the default.
typedef struct numsim_rounding_t {
  int32_t mode;
  int32_t variant;      // used only with NUMSIM_ROUND_STOCHASTIC
  int32_t random_bits;  // N, 1 to 32; used only with NUMSIM_ROUND_STOCHASTIC
  int32_t overflow;
  int32_t tininess;
  int32_t reserved[3];  // 0
} numsim_rounding_t;

// Returns nearest-even, nonsaturating rounding with tininess after rounding. If the caller changes
// the mode to stochastic, the variant is A with 32 random bits.
NUMSIM_API numsim_rounding_t numsim_rounding_default(void) NUMSIM_NOEXCEPT;

// Flags: an OR of these bits, the same as in Berkeley SoftFloat.
enum {
  NUMSIM_INEXACT = 0x01,
  NUMSIM_UNDERFLOW = 0x02,
  NUMSIM_OVERFLOW = 0x04,
  NUMSIM_DIVIDE_BY_ZERO = 0x08,
  NUMSIM_INVALID = 0x10
};

// ---- Conversion of one number ----
//
// `random` holds the random bits R of stochastic rounding in its low random_bits bits. Higher bits
// are ignored, and other modes ignore all of it. `flags` may be NULL in every function.
// A NaN gives the format's canonical NaN, with the same sign if the format has NaNs of both signs.
// A format without NaN gives its largest value and raises NUMSIM_INVALID.

// Encode a value: set *code to its code in the format `to`, rounded once.
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
// Integers, and text: a decimal or hexadecimal number of any length, a sum or difference of two, "inf"
// or "nan" ("0.1", "0x1.8p-1", "1+1e-30"). Text that is none of these, or longer than 100,000
// characters, is NUMSIM_ERROR_BAD_ARGUMENT.
NUMSIM_API numsim_status_t numsim_encode_i64(int64_t value,
                                             const numsim_format_t* to,
                                             const numsim_rounding_t* rounding,
                                             uint32_t random,
                                             uint32_t* code,
                                             uint8_t* flags) NUMSIM_NOEXCEPT;
NUMSIM_API numsim_status_t numsim_encode_u64(uint64_t value,
                                             const numsim_format_t* to,
                                             const numsim_rounding_t* rounding,
                                             uint32_t random,
                                             uint32_t* code,
                                             uint8_t* flags) NUMSIM_NOEXCEPT;
NUMSIM_API numsim_status_t numsim_encode_text(const char* text,
                                              const numsim_format_t* to,
                                              const numsim_rounding_t* rounding,
                                              uint32_t random,
                                              uint32_t* code,
                                              uint8_t* flags) NUMSIM_NOEXCEPT;

// Decode a code to its exact value. NaN codes give a quiet NaN of the same sign. The unused code of
// int8 (0x80) gives -128.
NUMSIM_API numsim_status_t numsim_decode_f32(const numsim_format_t* format,
                                             uint32_t code,
                                             uint32_t* value_bits) NUMSIM_NOEXCEPT;
NUMSIM_API numsim_status_t numsim_decode_f64(const numsim_format_t* format,
                                             uint32_t code,
                                             uint64_t* value_bits) NUMSIM_NOEXCEPT;

// Computes the random bits R that the array functions use for element `index` of a stream. Requires
// 1 <= bits <= 32.
NUMSIM_API numsim_status_t numsim_random_bits(
    uint64_t seed, uint64_t stream, uint64_t index, int bits, uint32_t* random) NUMSIM_NOEXCEPT;

// ---- Arithmetic on one, two or three codes ----
//
// Each operand has its own format, and the result has the format `to`. Every result is the exact
// value rounded once. A NaN operand or an invalid operation gives the canonical NaN with the sign
// bit clear; a format without NaN gives its largest value. Infinities and signs of zero follow IEEE
// 754.

// Compute a + b, a - b, a * b, a / b.
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
// Computes a - n b, where n is the integer nearest to a / b, ties to even.
NUMSIM_API numsim_status_t numsim_remainder(const numsim_format_t* a_format,
                                            uint32_t a,
                                            const numsim_format_t* b_format,
                                            uint32_t b,
                                            const numsim_format_t* to,
                                            const numsim_rounding_t* rounding,
                                            uint32_t random,
                                            uint32_t* code,
                                            uint8_t* flags) NUMSIM_NOEXCEPT;
// Computes a * b + c.
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
// Computes the square root of a.
NUMSIM_API numsim_status_t numsim_sqrt(const numsim_format_t* a_format,
                                       uint32_t a,
                                       const numsim_format_t* to,
                                       const numsim_rounding_t* rounding,
                                       uint32_t random,
                                       uint32_t* code,
                                       uint8_t* flags) NUMSIM_NOEXCEPT;
// Converts `a` to the format `to`. Keeps the sign of a NaN, like numsim_encode_f32.
NUMSIM_API numsim_status_t numsim_convert(const numsim_format_t* a_format,
                                          uint32_t a,
                                          const numsim_format_t* to,
                                          const numsim_rounding_t* rounding,
                                          uint32_t random,
                                          uint32_t* code,
                                          uint8_t* flags) NUMSIM_NOEXCEPT;
// Computes a * 2^n for any n.
NUMSIM_API numsim_status_t numsim_scale(const numsim_format_t* a_format,
                                        uint32_t a,
                                        int64_t n,
                                        const numsim_format_t* to,
                                        const numsim_rounding_t* rounding,
                                        uint32_t random,
                                        uint32_t* code,
                                        uint8_t* flags) NUMSIM_NOEXCEPT;

enum {  // function; docs/rounding.md has the results at infinities and zeros
  NUMSIM_EXP = 0,
  NUMSIM_EXP2 = 1,
  NUMSIM_LOG = 2,  // the natural logarithm
  NUMSIM_LOG2 = 3,
  NUMSIM_TANH = 4,
  NUMSIM_SIGMOID = 5,    // 1 / (1 + e^-a)
  NUMSIM_GELU = 6,       // a Phi(a); Phi: distribution function of the normal distribution
  NUMSIM_GELU_TANH = 7,  // a (1 + tanh(sqrt(2 / pi) (a + 0.044715 a^3))) / 2
  NUMSIM_EXPM1 = 8,      // e^a - 1
  NUMSIM_LOG1P = 9,      // ln(1 + a)
  NUMSIM_SOFTPLUS = 10,  // ln(1 + e^a)
  NUMSIM_RSQRT = 11,     // 1 / sqrt(a)
  NUMSIM_SIN = 12,       // of radians, as are the next two
  NUMSIM_COS = 13,
  NUMSIM_TAN = 14,
  NUMSIM_ASIN = 15,  // in radians, as are the next two
  NUMSIM_ACOS = 16,
  NUMSIM_ATAN = 17,
  NUMSIM_SINPI = 18,  // sin(pi a), and so on
  NUMSIM_COSPI = 19,
  NUMSIM_TANPI = 20,
  NUMSIM_ASINPI = 21,  // asin(a) / pi, and so on
  NUMSIM_ACOSPI = 22,
  NUMSIM_ATANPI = 23,
  NUMSIM_SINH = 24,
  NUMSIM_COSH = 25,
  NUMSIM_ASINH = 26,
  NUMSIM_ACOSH = 27,
  NUMSIM_ATANH = 28
};
// Computes function(a), the exact value rounded once. An infinite result at a finite operand, such as
// the logarithm of zero, sets NUMSIM_DIVIDE_BY_ZERO; an operand outside the domain gives NaN with
// NUMSIM_INVALID.
NUMSIM_API numsim_status_t numsim_elementary(int function,
                                             const numsim_format_t* a_format,
                                             uint32_t a,
                                             const numsim_format_t* to,
                                             const numsim_rounding_t* rounding,
                                             uint32_t random,
                                             uint32_t* code,
                                             uint8_t* flags) NUMSIM_NOEXCEPT;

enum {  // extremum; see IEEE 754-2019 9.6 and P3109
  NUMSIM_MINIMUM = 0,
  NUMSIM_MAXIMUM = 1,
  NUMSIM_MINIMUM_NUMBER = 2,  // ..._NUMBER: if one operand is NaN, the other one
  NUMSIM_MAXIMUM_NUMBER = 3,
  NUMSIM_MINIMUM_MAGNITUDE = 4,
  NUMSIM_MAXIMUM_MAGNITUDE = 5,
  NUMSIM_MINIMUM_MAGNITUDE_NUMBER = 6,
  NUMSIM_MAXIMUM_MAGNITUDE_NUMBER = 7,
  NUMSIM_MINIMUM_FINITE = 8,
  NUMSIM_MAXIMUM_FINITE = 9
};
// Computes a minimum or maximum of a and b.
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
  NUMSIM_UNORDERED = 3  // at least one operand is NaN
};
// Determines the relation of a to b. -0 equals +0.
NUMSIM_API numsim_status_t numsim_compare(const numsim_format_t* a_format,
                                          uint32_t a,
                                          const numsim_format_t* b_format,
                                          uint32_t b,
                                          int* relation) NUMSIM_NOEXCEPT;

// ---- Arrays ----
//
// The elements of an array of codes have code_bytes = 1, 2 or 4 bytes, at least the format's
// storage_bytes. Arrays must be aligned to their elements. An array of 0 elements may be NULL.
// Arrays must not overlap unless a function states otherwise.

// Random bits of an array call in stochastic mode. If `words` is not NULL, R of element i is the
// low random_bits bits of words[i]. Otherwise it is numsim_random_bits(seed, stream, first_index +
// i, random_bits). Other modes do not read this struct, and a pointer to it may be NULL.
//
// Element i gets the same bits in every call with the same seed and stream. Use different streams
// for two arrays whose rounding errors should be independent, such as the two operands of a GEMM.
typedef struct numsim_random_t {
  const uint32_t* words;
  uint64_t seed;
  uint64_t stream;
  uint64_t first_index;  // first_index + n must not exceed 2^64 - 1
} numsim_random_t;

// Set codes[i] to the code of in[i].
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
// Sets out[i] to the value of codes[i]. Ignores bits of an element above the format's width.
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
// An array of codes of one format, owned by the caller.
typedef struct numsim_codes_t {
  numsim_format_t format;
  const void* codes;  // n elements; bits above the format's width are ignored
  int32_t code_bytes;
  int32_t reserved;  // 0
} numsim_codes_t;
// Sets out[i] to operation(a[i], b[i], c[i]), with the same bits as the functions above. Operands
// that the operation does not use must be NULL. `out` may be the code array of an operand if both
// have the same number of bytes per element. Unless NULL, flags[i] receives the flags of element i,
// and *all_flags the OR of all flags.
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
// Sets out[i] to function(a[i]) of numsim_elementary; otherwise like numsim_arithmetic_array.
NUMSIM_API numsim_status_t numsim_elementary_array(int function,
                                                   const numsim_codes_t* a,
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
// Matrices are row-major, rows x cols. A layout determines which elements share a scale.

enum {                      // granularity
  NUMSIM_SCALE_TENSOR = 0,  // one scale for the matrix
  NUMSIM_SCALE_ROW = 1,     // one per row
  NUMSIM_SCALE_COLUMN = 2,  // one per column
  NUMSIM_SCALE_BLOCK = 3    // one per `block` consecutive elements of a row; stored row by row
};
// A layout of scales: which elements of a matrix share one.
typedef struct numsim_scale_layout_t {
  int32_t granularity;
  int32_t reserved;  // 0
  uint64_t block;    // >= 1; used only with NUMSIM_SCALE_BLOCK
} numsim_scale_layout_t;

// Computes the number of scales of a rows x cols matrix.
NUMSIM_API numsim_status_t numsim_scale_count(const numsim_scale_layout_t* layout,
                                              size_t rows,
                                              size_t cols,
                                              size_t* count) NUMSIM_NOEXCEPT;
// Sets absmax[s] to the largest |x| over the finite elements that share scale s, or to 0 if there
// are none.
NUMSIM_API numsim_status_t numsim_absmax(const float* in,
                                         size_t rows,
                                         size_t cols,
                                         const numsim_scale_layout_t* layout,
                                         float* absmax) NUMSIM_NOEXCEPT;
enum {  // rule that computes a scale from absmax A and the largest finite value M of the format
  NUMSIM_SCALE_RULE_ABSMAX = 0,      // scale = A / M, inv_scale = M / A, each rounded to float32
  NUMSIM_SCALE_RULE_POW2_FLOOR = 1,  // 2^floor(log2(A / M)); values above M * scale saturate
  NUMSIM_SCALE_RULE_POW2_CEIL = 2,   // 2^ceil(log2(A / M)); nothing saturates
  NUMSIM_SCALE_RULE_E8M0 = 3,        // 2^(floor(log2 A) - floor(log2 M)), for blocks of OCP MX
  NUMSIM_SCALE_RULE_NONE = 4         // 1
};
// Sets scales[i] and inv_scales[i] to the scale and its inverse for the absolute maximum absmax[i],
// as numsim_absmax computes it: numsim_quantize multiplies by inv_scales, numsim_dequantize and
// numsim_gemm by scales. An absmax of 0 (a row of zeros) gives 1 and 1, so that zeros become zero
// codes. Both are finite: powers of two are at least 2^-127 and at most 2^127, as in e8m0fnu; under
// NUMSIM_SCALE_RULE_ABSMAX, if A / M is below 2^-126, A is replaced by M * 2^-126, and A / M is at most
// float32's largest value. Returns NUMSIM_ERROR_BAD_ARGUMENT and writes nothing if the rule is
// unknown or if an absmax is negative, infinite or NaN.
NUMSIM_API numsim_status_t numsim_make_scales(const numsim_format_t* format,
                                              const float* absmax,
                                              size_t n,
                                              int rule,
                                              float* scales,
                                              float* inv_scales) NUMSIM_NOEXCEPT;
// Sets codes(r, c) to the code of in(r, c) * inv_scale; the product is rounded to float32 first.
// The element uses the random bits of index r * cols + c. If transpose is not 0, the codes are
// stored as a cols x rows matrix. An inverse scale that is infinite or NaN is
// NUMSIM_ERROR_BAD_ARGUMENT.
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
// Sets out(r, c) to the value of codes(r, c) times the scale, rounded to float32. The codes are not
// transposed. An infinite scale, which is what a number beyond float32 becomes, is
// NUMSIM_ERROR_BAD_ARGUMENT; a NaN, which e8m0fnu has, makes its elements NaN.
NUMSIM_API numsim_status_t numsim_dequantize(const numsim_format_t* format,
                                             const void* codes,
                                             int code_bytes,
                                             size_t rows,
                                             size_t cols,
                                             const numsim_scale_layout_t* layout,
                                             const float* scales,
                                             float* out) NUMSIM_NOEXCEPT;

// ---- GEMM ----
//
// A B^T in float32 in a given accumulation mode, including those of the tensor cores of GPUs.
// docs/oracle.md, "Dot products", explains the modes. Their texts are "exact", "fp64", a format
// ("fp32": one fused multiply-add per product in order), a format with ":unfused",
// "fp32-chunked:N", "trunc:F,CHUNK", "trunc:F,CHUNK,PROMOTE", and the names of
// numsim_accumulator_info ("hopper-fp8"). The mode "library" is not available here.

// An operand of a GEMM: vectors of `inner` elements, stored as vectors x inner, or as inner x
// vectors if `transposed` is not 0. Each element stands for its value times its scale.
typedef struct numsim_factor_t {
  numsim_format_t format;
  const void* codes;   // bits above the format's width are ignored; floats are codes of fp32
  int32_t code_bytes;  // 1, 2 or 4, at least the format's storage_bytes
  int32_t transposed;
  const float* scales;           // NULL: no scales, and `layout` is not read
  numsim_scale_layout_t layout;  // layout of the vectors x inner matrix, even if it is transposed
} numsim_factor_t;

// Sets out(i, j) to the sum over k of a(i, k) b(j, k). `out` is rows x cols, row-major. `a` has
// `rows` vectors, `b` has `cols` vectors. The products of values are exact, and their sum S follows
// the accumulation mode. Then
//   out = float32(float64(S * (scale of a * scale of b))),    S = 0 if inner is 0.
// An operand with NUMSIM_SCALE_BLOCK splits the inner dimension into its blocks, and one with
// NUMSIM_SCALE_COLUMN into single elements. `out` is then the float32 sum of such results over the
// segments from the first to the last. If both operands split the inner dimension, their blocks
// must have the same length. A block of at least `inner` elements is one scale per vector.
// Under the block-scaled modes ("mxf8f6f4", "mxf4", "mxf4nvf4"; docs/mx.md) the scales enter S, which
// is one sum, and out = S. They must be numbers of e8m0fnu or, under "mxf4nvf4", of ue4m3fn, in blocks
// of a multiple of 32 elements, or of 16 under the last two; otherwise NUMSIM_ERROR_BAD_ARGUMENT with a
// message. The scales of tensors that NVFP4 has beside them are for the caller to multiply.
// Every NaN is 0x7FFFFFFF under "trunc", names of such modes and block-scaled modes, and 0x7FC00000
// otherwise.
// Returns NUMSIM_ERROR_UNKNOWN_ACCUMULATOR if `accumulator` is not an available mode, and
// NUMSIM_ERROR_ACCUMULATOR_OPERANDS if it is a name of numsim_accumulator_info whose `operands` do
// not include both formats. Modes without a device's name, such as "exact" or "trunc:13,32", are
// for all formats. `message` receives the reason of a failure, as in numsim_format_by_name. A list
// of names that does not fit ends with "... see numsim_accumulator_info".
NUMSIM_API numsim_status_t numsim_gemm(const numsim_factor_t* a,
                                       const numsim_factor_t* b,
                                       size_t rows,
                                       size_t cols,
                                       size_t inner,
                                       const char* accumulator,
                                       float* out,
                                       char* message,
                                       size_t message_size) NUMSIM_NOEXCEPT;

// Does the same as numsim_gemm, but takes operands of any formats under every mode: what the adders
// of a device would give for operands that it does not have.
NUMSIM_API numsim_status_t numsim_gemm_any_operands(const numsim_factor_t* a,
                                                    const numsim_factor_t* b,
                                                    size_t rows,
                                                    size_t cols,
                                                    size_t inner,
                                                    const char* accumulator,
                                                    float* out,
                                                    char* message,
                                                    size_t message_size) NUMSIM_NOEXCEPT;

// A named accumulation mode: the behaviour of a device.
typedef struct numsim_accumulator_info_t {
  const char* name;      // "hopper-fp8"
  const char* rule;      // "trunc:13,32,128", or a description if no such text exists
  const char* operands;  // names of the formats that it is for: "e4m3fn, e5m2"
  const char* source;    // entry of docs/references.md
  const char* note;      // one line
  int32_t measured;      // 1: measured on the device by this project, bit for bit; 0: reported
  int32_t reserved;      // 0
} numsim_accumulator_info_t;

// Return the number of named accumulation modes, and describe mode `index`. The latter returns
// NUMSIM_ERROR_BAD_ARGUMENT if index >= numsim_accumulator_count().
NUMSIM_API size_t numsim_accumulator_count(void) NUMSIM_NOEXCEPT;
NUMSIM_API numsim_status_t numsim_accumulator_info(size_t index,
                                                   numsim_accumulator_info_t* info) NUMSIM_NOEXCEPT;

// ---- Profiles: the conversions of other implementations ----
//
// `numsim oracle profiles` lists them. Two more forms of names are accepted: "p3109-a:8" is p3109-a
// (or -b, -c) with 8 random bits, and "rule:rtz,saturate" is numsim's own conversion with that
// rounding and overflow for any target. Each profile is defined for certain source types and
// targets. For any other the functions return NUMSIM_ERROR_UNSUPPORTED and write a message as
// numsim_format_by_name does.

enum {  // source type
  NUMSIM_FLOAT32 = 0,
  NUMSIM_FLOAT64 = 1
};

// Return the number of profiles, and the name of profile `index`, or NULL if index >=
// numsim_profile_count().
NUMSIM_API size_t numsim_profile_count(void) NUMSIM_NOEXCEPT;
NUMSIM_API const char* numsim_profile_name(size_t index) NUMSIM_NOEXCEPT;

// Sets *bits to the number of low bits of `random` or of a random word that the conversion reads; 0
// if it is deterministic.
NUMSIM_API numsim_status_t numsim_profile_random_bits(const char* profile,
                                                      int source_type,
                                                      const numsim_format_t* to,
                                                      int* bits,
                                                      char* message,
                                                      size_t message_size) NUMSIM_NOEXCEPT;
// Converts one value. `value_bits` is a float64, or a float32 in the low 32 bits with the rest
// clear.
NUMSIM_API numsim_status_t numsim_profile_encode(const char* profile,
                                                 int source_type,
                                                 uint64_t value_bits,
                                                 const numsim_format_t* to,
                                                 uint32_t random,
                                                 uint32_t* code,
                                                 char* message,
                                                 size_t message_size) NUMSIM_NOEXCEPT;
// Converts an array of n floats or doubles, depending on source_type. Only stochastic profiles read
// `random`.
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
