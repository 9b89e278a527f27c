-- What all scripts share. A script answers with a table whose first element says how it went:
-- 'ok', or why nothing was done ('lease', 'head', 'taken'), with what was found behind it.
--
-- A refusal is what a script answers when it does nothing; a check answers nil when all is well,
-- so that checks are strung together with `or`.

-- How many arguments Lua hands over in one call: it has room for 8,000 values on its stack.
local CHUNK = 7000

-- A lease reads TOKEN, a space, and who holds it. TOKEN has 32 characters: 16 for the run, and 16
-- for the connection within it.
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

-- Refuses a command that this user may not run on the key. Redis before 7.0 cannot tell; there the
-- proof given at the start has to do.
local function permission_refusal(command, key, ...)
    if redis.acl_check_cmd and not redis.acl_check_cmd(command, key, ...) then
        return redis.error_reply(
            'NOPERM this user may not run ' .. command .. ' on the key ' .. key)
    end
end
