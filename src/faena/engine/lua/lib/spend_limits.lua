--- Write granted claims into every window.
--@include window
--@exports spend_limits
local function spend_limits(text, now, number)
  for _, window in ipairs(windows_of(text)) do
    spend(window, now, number)
  end
end
