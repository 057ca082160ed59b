# The package for Spack: copy it to packages/numsim/ of a repository of packages, and put in where the release is
# published and, from its SHA256SUMS, the digest.
from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Numsim(CMakePackage):
    """Small number formats, bit for bit: a C++20 library, a C library and the program numsim."""

    homepage = "https://releases.numsim.invalid"
    url = "https://releases.numsim.invalid/numsim-0.2.0.tar.gz"

    license("MIT")

    version("0.2.0", sha256="0000000000000000000000000000000000000000000000000000000000000000")

    variant("cuda", default=False, description="Build the kernels for NVIDIA GPUs (Hopper)")
    variant("onednn", default=False, description="Multiply float32 by oneDNN")
    variant("tokenizers", default=False, description="Train and read tokenizers by SentencePiece")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("cli11", type="build")
    depends_on("eigen@3.4:", type="build")
    depends_on("nlohmann-json", type="build")
    depends_on("tomlplusplus", type="build")
    depends_on("fmt@9:")
    depends_on("highway@1.0.3:")
    depends_on("openssl")
    depends_on("zlib-api")
    depends_on("cuda@12.4:", when="+cuda")
    depends_on("onednn@2.6: cpu_runtime=omp", when="+onednn")
    depends_on("sentencepiece", when="+tokenizers")

    conflicts("%gcc@:11", msg="numsim is C++20: GCC 12 or newer")
    conflicts("%clang@:13", msg="numsim is C++20: Clang 14 or newer")

    generator("ninja")

    def cmake_args(self):
        return [
            self.define("BUILD_TESTING", False),
            self.define("NUMSIM_BUILD_BENCH", False),
            self.define_from_variant("NUMSIM_WITH_CUDA", "cuda"),
            self.define_from_variant("NUMSIM_ONEDNN", "onednn"),
            self.define_from_variant("NUMSIM_SENTENCEPIECE", "tokenizers"),
        ]

    def test_version(self):
        """The program states the version of the package."""
        numsim = which(self.prefix.bin.numsim)
        assert f"numsim {self.version}" in numsim("--version", output=str)
