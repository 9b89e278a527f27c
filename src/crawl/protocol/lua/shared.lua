-- Functions that all scripts share. A script answers with a table. Its first element is the status:
-- 'ok', or the reason why the script changed nothing ('lease', 'head', 'source', 'refused'). The
-- details come after the status.
--
-- A refusal is the answer of a script that changes nothing. A check answers a refusal or nil, so
-- that `or` joins checks.

-- A lease is the text TOKEN, a space, and the holder. TOKEN has 32 characters: 16 for the run, and
-- 16 for the connection of the run.
local function token_of(lease)
    return string.sub(lease or '', 1, 32)
end

local function run_of(lease)
    return string.sub(lease, 1, 16)
end

local function lease_refusal(key, token)
    local lease = redis.call('GET', key)
    if token_of(lease) ~= token then
        return {'lease', lease or ''}
    end
end

-- Refuses a key that holds a value of another type.
local function type_refusal(key, wanted)
    local found = redis.call('TYPE', key).ok
    if found ~= 'none' and found ~= wanted then
        return redis.error_reply(
            'WRONGTYPE the key ' .. key .. ' holds a ' .. found .. ', not a ' .. wanted)
    end
end
