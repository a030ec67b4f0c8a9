--- The server's clock in microseconds; `given` replaces it in tests only.
--@include read
--@exports now_us
local function now_us(given)
  if given ~= '' then
    local instant = number_in(given, -1)
    return instant >= 0 and instant <= 2 ^ 53 and instant or error({ err = 'BAD_ARGUMENT now must be an instant' })
  end
  local time = call('TIME')
  return time[1] * 1000000 + time[2]
end
