-- Commits one batch: pushes its emitted items to the sink, removes the batch from the claimed items
-- and advances the head, in one step. First come all checks, then all writes.
--
-- The emitted items come in one of two forms:
--   arguments   the script pushes them
--   pushed      a plain command of the same transaction has pushed them before the script, because
--               to pass each item through Lua takes four times as long. If a check fails, the
--               script takes the push back. Redis serves no other client in between, so no client
--               has seen the push. If memory is short, Redis refuses the whole transaction
-- The filter is in one of two places:
--   daemon      `judge` is nil, and all the items are emitted
--   Redis       `judge` and `filter_refusal`, which belong to the kind of filter, stand before this
--               text. The items are arguments, and `judge` answers those to emit, the number of
--               unseen items, and a function that adds these to the filter. Other programs that
--               share the filter see all changes or none
--
-- KEYS: lease, state, claimed items, sink, rejects, the keys of a filter in Redis
-- ARGV: token, seq, commit_id, next seq, next commit_id, number of claimed items, number of items
--       of the batch, end from which items are taken ('left' or 'right'), maximum number of rejects
--       (0: no limit), command that pushes to the sink (RPUSH, LPUSH or ZADD), number of pushed
--       items, last pushed item, number of items in arguments, number of extras, places, the items,
--       the extras, the rejects. Only `judge` reads places and extras. For ZADD, an item is its
--       score, a space, and the item
-- Answers 'ok', length of the sink, number of rejects, number of dropped rejects, and with a filter
--       in Redis the number of unseen items; or 'lease' and the lease; 'head', seq and commit_id;
--       'source' and what has changed; or an error
-- Never commits under another token or after another head, or a part of a batch, or a batch whose
-- items another program has changed. A seen item adds nothing to the append-only file.
local lease, state, claimed, sink, rejected = unpack(KEYS, 1, 5)
local token, seq, commit_id, next_seq, next_commit_id = unpack(ARGV, 1, 5)
local before, count, take_from = ARGV[6], tonumber(ARGV[7]), ARGV[8]
local rejects_max, push = tonumber(ARGV[9]), ARGV[10]
local pushed, last_pushed = tonumber(ARGV[11]), ARGV[12]
local first_item = 16
local first_extra = first_item + tonumber(ARGV[13])
local first_reject = first_extra + tonumber(ARGV[14])
local filter = {unpack(KEYS, 6)}

local function head_refusal()
    local head = redis.call('HMGET', state, 'seq', 'commit_id')
    if head[1] ~= seq or head[2] ~= commit_id then
        return {'head', head[1] or '', head[2] or ''}
    end
end

local function push_refusal()
    if push == 'ZADD' then
        return permission_refusal(push, sink, '0', '')
    end
    return permission_refusal(push, sink, '')
end

-- Refuses unless the last pushed item is in the sink. Redis executes a transaction to its end even
-- if a command fails, so the push may be missing.
local function pushed_refusal()
    local newest = redis.pcall('LINDEX', sink, push == 'RPUSH' and -1 or 0)
    if type(newest) == 'table' and newest.err then
        return newest
    end
    if newest ~= last_pushed then
        return redis.error_reply('NOPERM this user may not run ' .. push .. ' on the key ' .. sink)
    end
end

local function take_push_back()
    if push == 'RPUSH' then
        redis.call('LTRIM', sink, 0, -pushed - 1)
    else
        redis.call('LTRIM', sink, pushed, -1)
    end
end

-- Pushes the elements `from` to `to` of `items`. A member of a sorted set takes two arguments.
local function push_items(items, from, to)
    local chunk = push == 'ZADD' and CHUNK / 2 or CHUNK
    for first = from, to, chunk do
        local last = math.min(first + chunk - 1, to)
        if push ~= 'ZADD' then
            redis.call(push, sink, unpack(items, first, last))
        else
            local pairs, length = {}, 0
            for index = first, last do
                local item = items[index]
                local space = string.find(item, ' ', 1, true)
                pairs[length + 1] = string.sub(item, 1, space - 1)
                pairs[length + 2] = string.sub(item, space + 1)
                length = length + 2
            end
            redis.call(push, sink, unpack(pairs, 1, length))
        end
    end
end

-- Answers the length of the sink. Fails if the key is of another type.
local function sink_length()
    return redis.call(push == 'ZADD' and 'ZCARD' or 'LLEN', sink)
end

local function commit()
    -- The checks: each command below that may fail, fails before the first write.
    local refusal = lease_refusal(lease, token)
        or head_refusal()
        or claimed_refusal(claimed, before)
        or rejects_refusal(rejected, first_reject)
        or permission_refusal('HSET', state, 'seq', next_seq, 'commit_id', next_commit_id)
        or pushed == 0 and push_refusal()
        or judge and filter_refusal(filter)
    if refusal then
        return refusal
    end
    local sink_len, rejected_len = sink_length(), redis.call('LLEN', rejected)
    local items, from, to = ARGV, first_item, first_extra - 1
    local head = {'seq', next_seq, 'commit_id', next_commit_id}
    local unseen, remember
    if judge then
        local unseen_before = tonumber(redis.call('HGET', state, 'unseen') or 0) or 0
        items, unseen, remember = judge(filter, ARGV[15], from, to, first_extra)
        from, to = 1, #items
        head[5], head[6] = 'unseen', string.format('%.0f', unseen_before + unseen)
    end

    -- The writes. After this line nothing can fail.
    if remember then
        remember()
    end
    push_items(items, from, to)
    -- A push need not make a sorted set longer, so the script asks for the length again.
    if from <= to then
        sink_len = sink_length()
    end
    push_arguments('RPUSH', rejected, first_reject)
    remove_claimed(claimed, take_from, count)
    redis.call('HSET', state, unpack(head))
    local rejects, dropped = #ARGV - first_reject + 1, 0
    if rejects > 0 and rejects_max > 0 then
        dropped = math.max(rejected_len + rejects - rejects_max, 0)
    end
    if dropped > 0 then
        redis.call('LTRIM', rejected, dropped, -1)
    end
    return {'ok', sink_len, rejected_len + rejects - dropped, dropped, unseen}
end

if pushed == 0 then
    return commit()
end
local refusal = pushed_refusal()
if refusal then
    return refusal
end
local is_done, answer = pcall(commit)
if not is_done and type(answer) == 'string' then
    answer = redis.error_reply(answer)
end
if answer[1] ~= 'ok' then
    take_push_back()
end
return answer
