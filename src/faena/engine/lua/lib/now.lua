--- The instant of a call in microseconds: the server's clock, or in tests the call's first argument.
--@include safe_read
--@exports now_us, is_now
--@state now = false
local function now_us()
  local now, given = context.now, ARGV[1]
  if now then
    return now
  elseif given ~= '' then
    now = number_in(given, -1)
    if now < 0 or now > 2 ^ 53 then
      error({ err = 'BAD_ARGUMENT now must be an instant' })
    end
  else
    local time = call('TIME')
    now = time[1] * 1000000 + time[2]
  end
  context.now = now
  return now
end

--- Whether that is the present.
local function is_now()
  return ARGV[1] == ''
end
