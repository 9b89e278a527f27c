-- Takes the lease under a fresh token, and reads where the crawl stands.
-- KEYS: lease, state, processing, the name of the processing list in earlier versions
-- ARGV: token, holder, milliseconds, then the runs that are known to be dead
-- Answers 'ok', seq, commit_id, format, filter, length of processing, items found unseen; or
-- 'held', lease, its milliseconds left, seq, commit_id, filter.
local lease, state, processing, earlier = unpack(KEYS)
local token, holder, milliseconds = unpack(ARGV)

local refusal = type_refusal(lease, 'string')
    or type_refusal(state, 'hash')
    or type_refusal(processing, 'list')
if refusal then
    return refusal
end
-- Beside keys of an earlier version the crawl would seem to be new.
if redis.call('TYPE', earlier).ok ~= 'none' then
    return {'earlier', earlier}
end
if redis.call('HMGET', state, 'tip')[1] then
    return {'earlier', state}
end
local held = redis.call('GET', lease)
local is_free = not held or run_of(held) == run_of(token)
for index = 4, #ARGV do
    is_free = is_free or run_of(held) == ARGV[index]
end
local found = redis.call('HMGET', state, 'seq', 'commit_id', 'format', 'filter', 'unseen')
if not is_free then
    local left = redis.call('PTTL', lease)
    return {'held', held, left, found[1] or '', found[2] or '', found[4] or ''}
end
local length = redis.call('LLEN', processing)
redis.call('SET', lease, token .. ' ' .. holder, 'PX', milliseconds)
return {'ok', found[1] or '', found[2] or '', found[3] or '', found[4] or '', length, found[5] or ''}
