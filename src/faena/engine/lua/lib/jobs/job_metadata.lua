--- Marks: what is known of a job beyond its spec, by id. An ordinary job has none.
--   a  attempts used        l  deliveries lost with their worker     i  the job has an info hash
--   p  changed priority     c  cancellation asked while running
--   u  its unique hash      m  mode of the unique claim              n  the job that follows it
--   o  first of its line    b  the dead job that it was made of      x  automatic retries of the line
--   e  when it expires      k  how often it was snoozed              r  why it was, the last time
--   q  when it was taken in, of a job that has left the place it had then
--   d  the redrive that made it   w  the flow or group it tells   t  what it told last
--   y  {how often, why}: it was parked since a handler last had it
--   s  its place in its chain, to which it comes back
--   v  {lease, costs}: what its handler has said it used under that lease
--   f  the fallback that was used instead of its handler, and the job that it was handed over to
-- `z` makes it long, see listpack.lua.
--@include safe_read, keys, idle_queue, listpack
--@exports read_mark, marks_of, save_marks, save_mark
--@state is_any_marked = nil   -- asked once a call

local KINDS = { a = 'number', e = 'number', l = 'number', p = 'number', x = 'number', k = 'number', q = 'number',
                u = 'string', m = 'string', n = 'string', o = 'string', b = 'string', d = 'string', w = 'string', t = 'string', r = 'string', f = 'string',
                v = 'table', y = 'table' }

local function read_mark(packed)
  local mark = keep_kinds(unpacked(packed) or {}, KINDS)
  if not (mark.u and mark.m) then
    mark.u, mark.m = nil, nil
  end
  return mark
end

local function marks_of(ids)
  local marks = {}
  if context.is_any_marked == nil then
    context.is_any_marked = not context.is_only_ready and call('EXISTS', key('marks')) == 1
  end
  if #ids > 0 and context.is_any_marked then
    local packed = call('HMGET', key('marks'), unpack(ids))
    for i = 1, #ids do
      if packed[i] then
        marks[ids[i]] = read_mark(packed[i])
      end
    end
  end
  return marks
end

--- Save the marks of some jobs, out of all in `marks`.
local function save_marks(ids, marks)
  local packed = {}
  for i = 1, #ids do
    local mark = marks[ids[i]]
    mark.z = PADDING
    packed[2 * i - 1], packed[2 * i] = ids[i], cmsgpack.pack(mark)
  end
  if #ids > 0 then
    call('HSET', key('marks'), unpack(packed))
    context.is_any_marked = true
  end
end

local function save_mark(id, mark)
  save_marks({ id }, { [id] = mark })
end
