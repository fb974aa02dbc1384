// Functions and structs of generated kernels. Those of one statement stand in one line.
#pragma once

#include <string>
#include <string_view>

namespace redfuser::codegen {

inline constexpr const char* kInline = "__device__ __forceinline__ ";

// A body in braces, without a newline behind it.
std::string braced(const std::string& body);
// A member function, and a newline. `signature`: from its type to its qualifiers; `parameters`: of
// a template.
std::string function_text(std::string_view signature, const std::string& body,
                          std::string_view parameters = "");
// A struct, and a newline. `name`: with its base, where it has one.
std::string struct_text(std::string_view name, const std::string& members);

}  // namespace redfuser::codegen
