// The fixed parts of report.html.
#pragma once

#include <string_view>

namespace obelisk {

extern const std::string_view kReportStyle;   // content of <style>
extern const std::string_view kReportScript;  // content of <script>: the charts' read-out

}  // namespace obelisk
