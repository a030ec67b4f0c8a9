--- What the dead-letter desk knows of a job, as it travels from one shard to another.
--@include keys, dead_index
--@exports dead_snapshot, unpack_desk
--- Packed record, packed sample of its group, when it is due or ''; nil when the desk does not know it.
local function dead_snapshot(id)
  local packed = call('HGET', key('desk'), id)
  if not packed then
    return nil
  end
  local sample = call('HGET', key('desk_samples'), cmsgpack.unpack(packed).f)
  return { packed, sample or '', call('ZSCORE', key('desk_due'), id) or '' }
end

local function unpack_desk(id, score, snapshot)
  local record = cmsgpack.unpack(snapshot[1])
  add_to_index({ [id] = record }, { [id] = score })
  if snapshot[2] ~= '' then
    call('HSETNX', key('desk_samples'), record.f, snapshot[2])
  end
  if snapshot[3] ~= '' then
    call('ZADD', key('desk_due'), snapshot[3], id)
  end
end
