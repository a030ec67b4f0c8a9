--- The JSON of a spec: task, tenant, key and headers, which its producer wrote before the payload.
--@include spec_line
--@exports read_body
local READ_AT_MOST = 16384   -- bytes that are looked through for what stands before the payload

--- What stands before the payload in a large body: task, tenant, key, headers. No quote within a text is bare.
local function front_of(body)
  local front = string.sub(body, 1, READ_AT_MOST)
  for at, name in string.gmatch(front, '(),"([%l_]+)":') do
    local ends_at = name == 'headers' and string.find(front, '},"payload":', at, true)
    if ends_at then
      return string.sub(front, 1, ends_at) .. '}'
    elseif name ~= 'tenant' and name ~= 'key' then
      return string.sub(front, 1, at - 1) .. '}'
    end
  end
  return '{}'
end

--- The task, the tenant and the key of a job, or '', and a table that may be its headers.
-- Nothing that a producer wrote can make this fail.
local function read_body(spec)
  local body = string.match(spec, '\n(.*)$') or ''
  local is_read, told = pcall(cjson.decode, #body <= READ_AT_MOST and body or front_of(body))
  told = is_read and type(told) == 'table' and told or {}
  local task = type(told.task) == 'string' and told.task or string.match(body, '^{"task":"([^"\\]+)"')
  local lane = lane_in(spec)
  return task or '', lane and string.sub(lane, 2) or type(told.tenant) == 'string' and told.tenant or '',
    type(told.key) == 'string' and told.key or '', told.headers
end
