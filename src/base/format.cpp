// The parts of fmt that do not depend on their callers' types, compiled once. Compiled with each
// file that formats a message, they take two seconds per file; the compiled library that Debian has
// is a shared one, which the programs would need at run time.
#include <fmt/format-inl.h>

// fmt/format.h declares these alone; the list is that of fmt's own src/format.cc.
FMT_BEGIN_NAMESPACE
namespace detail {

template thousands_sep_result<char> thousands_sep_impl(locale_ref);
template char decimal_point_impl(locale_ref);
template dragonbox::decimal_fp<float> dragonbox::to_decimal(float) noexcept;
template dragonbox::decimal_fp<double> dragonbox::to_decimal(double) noexcept;
#if FMT_VERSION >= 100000 && FMT_VERSION < 110100
template void vformat_to(buffer<char>&, string_view, vformat_args<char>::type, locale_ref);
#endif

}  // namespace detail
FMT_END_NAMESPACE
