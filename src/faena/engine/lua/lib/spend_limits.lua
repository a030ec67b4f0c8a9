--- Write granted claims into every window.
--@include window
local function spend_limits(text, now, number, lane)
  for _, window in ipairs(windows_of(text, lane)) do
    spend(window, now, number)
  end
end
