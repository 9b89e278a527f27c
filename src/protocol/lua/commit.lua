-- Commits one batch: all of it, or nothing and why. Redis does not roll a script back, so all that
-- can fail is checked before the first write. Out of memory, Redis refuses the first write of a
-- script if it takes memory and none behind one that went through: so what takes most goes first.
-- KEYS: lease, state, taken, sink, rejected
-- ARGV: token, seq, tip, next seq, next tip, length of taken, items in the batch, longest list of
--       rejects (0: no bound), items that go on, those items, the rejects
-- Answers 'ok', length of sink, length of rejected, rejects dropped.
local lease, state, taken, sink, rejected = unpack(KEYS)
local token, seq, tip, next_seq, next_tip = unpack(ARGV, 1, 5)
local taken_len, count = tonumber(ARGV[6]), tonumber(ARGV[7])
local rejected_max, onward = tonumber(ARGV[8]), tonumber(ARGV[9])
local first = 10
local first_reject = first + onward
local rejects = #ARGV - first_reject + 1

local function head_refusal()
    local head = redis.call('HMGET', state, 'seq', 'tip')
    if head[1] ~= seq or head[2] ~= tip then
        return {'head', head[1] or '', head[2] or ''}
    end
end

local function rejects_refusal()
    return rejects > 0 and (
        permission_refusal('RPUSH', rejected, '')
        or permission_refusal('LTRIM', rejected, 0, -1)) or nil
end

local refusal = lease_refusal(lease, token)
    or type_refusal(state, 'hash')
    or head_refusal()
    or source_refusal(taken, taken_len)
    or type_refusal(rejected, 'list')
    or rejects_refusal()
    or sink_refusal(sink)
    or permission_refusal('HSET', state, 'seq', next_seq, 'tip', next_tip)
if refusal then
    return refusal
end
local sink_len, rejected_len = sink_length(sink), redis.call('LLEN', rejected)

-- From here on nothing fails.
if onward > 0 then
    sink_push(sink, first, first_reject - 1)
end
for from = first_reject, #ARGV, CHUNK do
    redis.call('RPUSH', rejected, unpack(ARGV, from, math.min(from + CHUNK - 1, #ARGV)))
end
rejected_len = rejected_len + rejects
local dropped = 0
if rejects > 0 and rejected_max > 0 and rejected_len > rejected_max then
    dropped = rejected_len - rejected_max
    redis.call('LTRIM', rejected, dropped, -1)
end
source_remove(taken, count)
redis.call('HSET', state, 'seq', next_seq, 'tip', next_tip)
return {'ok', sink_len + onward, rejected_len - dropped, dropped}
