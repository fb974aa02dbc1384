#include "emulated_cuda/host_source.h"

#include <regex>

namespace redfuser::emulated_cuda {
namespace {

bool has_assembler(const std::string& text) {
  static const std::regex kAssembler("\\basm\\b");
  return std::regex_search(text, kAssembler);
}

// Lines, with those that a macro goes on in.
std::vector<std::string> logical_lines(const std::string& text) {
  std::vector<std::string> lines(1);
  for (size_t i = 0; i < text.size(); ++i) {
    lines.back() += text[i];
    if (text[i] == '\n' && (i == 0 || text[i - 1] != '\\')) lines.emplace_back();
  }
  return lines;
}

// Removes comments, which may contain the searched words, and macros with `asm`, which the
// emulation's headers define.
std::string without_comments_and_macros(const std::string& text) {
  std::string result;
  for (const std::string& line : logical_lines(text)) {
    if (line.starts_with("#define") && has_assembler(line)) continue;
    const size_t comment = line.find("//");
    result += comment == std::string::npos ? line : line.substr(0, comment) + "\n";
  }
  return result;
}

// The position after the bracket that closes the first `open` from `from` on.
size_t closed(const std::string& text, size_t from, char open, char close) {
  int depth = 0;
  for (size_t i = from; i < text.size(); ++i) {
    if (text[i] == open) ++depth;
    if (text[i] == close && --depth == 0) return i + 1;
  }
  return text.size();
}

// Where the declaration begins that this specifier is of.
size_t declaration(const std::string& text, size_t specifier) {
  size_t start = text.rfind('\n', specifier) + 1;
  while (start > 0) {
    const size_t line = start < 2 ? 0 : text.rfind('\n', start - 2) + 1;
    if (!text.compare(line, 8, "template") && text.find(';', line) > start) {
      start = line;
    } else {
      break;
    }
  }
  return start;
}

std::string without_assembler(std::string text) {
  static const std::string kDevice = "__device__";
  for (size_t at = text.find(kDevice); at != std::string::npos; at = text.find(kDevice, at)) {
    const size_t body = text.find_first_of("{;", at);
    if (body == std::string::npos) break;
    const size_t end = text[body] == '{' ? closed(text, body, '{', '}') : body + 1;
    if (text[body] == '{' && has_assembler(text.substr(body, end - body))) {
      const size_t start = declaration(text, at);
      text.erase(start, end - start);
      at = start;
    } else {
      at = body;
    }
  }
  return text;
}

// Dynamic shared memory: a macro outside of functions, a variable in them.
std::string with_dynamic_shared(const std::string& text) {
  static const std::regex kOutside(
      "\nextern __shared__ (?:__align__\\(\\d+\\) )?(\\w+) (\\w+)\\[\\];");
  static const std::regex kInside(
      "extern __shared__ (?:__align__\\(\\d+\\) )?(\\w+) (\\w+)\\[\\];");
  const std::string outside = std::regex_replace(
      text, kOutside, "\n#define $2 (reinterpret_cast<$1*>(emulated::host.dynamic_shared()))");
  return std::regex_replace(
      outside, kInside, "$1* const $2 = reinterpret_cast<$1*>(emulated::host.dynamic_shared());");
}

std::string entries(const std::string& text) {
  static const std::regex kKernel("__global__ void (?:__launch_bounds__\\([^)]*\\) )?(\\w+)\\(");
  std::string result =
      "#pragma GCC visibility push(default)\n"
      "extern \"C\" emulated::Thread** emulated_current() { return &emulated::current; }\n"
      "extern \"C\" char* emulated_anchor() { return &emulated::anchor; }\n"
      "extern \"C\" void emulated_start(const emulated::Services* given) "
      "{ emulated::host = *given; }\n";
  for (std::sregex_iterator it(text.begin(), text.end(), kKernel), end; it != end; ++it) {
    const std::string name = (*it)[1];
    result += "extern \"C\" void emulated_run_" + name + "(void** arguments) {\n" +
              "  emulated::start_thread();\n  emulated::call(&" + name + ", arguments);\n}\n" +
              "extern \"C\" int emulated_sizes_" + name + "(size_t* bytes) {\n" +
              "  return emulated::sizes(&" + name + ", bytes);\n}\n";
  }
  return result;
}

}  // namespace

std::string host_source(const std::string& cuda, int architecture) {
  const std::string text =
      with_dynamic_shared(without_assembler(without_comments_and_macros(cuda)));
  return "#include \"emulated_cuda/hopper_instructions.h\"\n#define __CUDA_ARCH__ " +
         std::to_string(architecture * 10) + "\n" + text + "\n" + entries(text);
}

}  // namespace redfuser::emulated_cuda
