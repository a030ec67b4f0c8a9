--- The server's clock in microseconds; `given` replaces it in tests only.
--@include key
local function now_us(given)
  if given ~= '' then
    return tonumber(given)
  end
  local time = call('TIME')
  return time[1] * 1000000 + time[2]
end
