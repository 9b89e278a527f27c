-- Takes the lease under a fresh token, and reads where the crawl stands.
-- KEYS: lease, state, taken
-- ARGV: token, holder, milliseconds, then the runs that are known to be dead
-- Answers 'ok', seq, commit_id, version, filter, length of taken, items found unseen; or 'held', lease, its milliseconds left, seq, commit_id, filter.
local lease, state, taken = unpack(KEYS)
local token, holder, milliseconds = unpack(ARGV)

local refusal = type_refusal(lease, 'string')
    or type_refusal(state, 'hash')
    or type_refusal(taken, 'list')
if refusal then
    return refusal
end
local held = redis.call('GET', lease)
local is_free = not held or run_of(held) == run_of(token)
for index = 4, #ARGV do
    is_free = is_free or run_of(held) == ARGV[index]
end
local found = redis.call('HMGET', state, 'seq', 'commit_id', 'version', 'filter', 'unseen')
if not is_free then
    local left = redis.call('PTTL', lease)
    return {'held', held, left, found[1] or '', found[2] or '', found[4] or ''}
end
local length = redis.call('LLEN', taken)
redis.call('SET', lease, token .. ' ' .. holder, 'PX', milliseconds)
return {'ok', found[1] or '', found[2] or '', found[3] or '', found[4] or '', length, found[5] or ''}
