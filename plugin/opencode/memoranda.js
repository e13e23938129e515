// Memory for OpenCode: copy this file to ~/.config/opencode/plugin/. It asks `memory hook opencode` (docs/hooks.md)
// when a session begins, at each prompt, before compaction, and when a session ends; on any trouble it does nothing.
import { spawn } from "node:child_process"

const ask = (payload) =>
  new Promise((resolve) => {
    let text = ""
    const done = () => {
      try {
        resolve(JSON.parse(text).context ?? "")
      } catch {
        resolve("")
      }
    }
    const hook = spawn("memory", ["hook", "opencode"], { stdio: ["pipe", "pipe", "ignore"] })
    hook.on("error", done)
    hook.on("close", done)
    hook.stdin.on("error", () => {})
    hook.stdout.on("data", (part) => (text += part))
    hook.stdin.end(JSON.stringify(payload))
  })

export const Memoranda = async ({ directory }) => {
  const context = new Map() // of each session: what it was told so far
  const last = new Map() // and what was asked last, as OpenCode keeps no transcript a hook could read
  const tell = async (session, event, more = {}) => {
    const text = await ask({ hook_event_name: event, session_id: session, cwd: directory, ...more })
    if (text) context.set(session, [...(context.get(session) ?? []), text])
  }
  return {
    "chat.message": async ({ sessionID }, { parts }) => {
      if (!context.has(sessionID)) {
        context.set(sessionID, [])
        await tell(sessionID, "start", { source: "startup" })
      }
      const prompt = parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text).join("\n")
      last.set(sessionID, prompt)
      await tell(sessionID, "prompt", { prompt })
    },
    "experimental.chat.system.transform": async ({ sessionID }, { system }) => {
      system.push(...(context.get(sessionID) ?? []))
    },
    "experimental.session.compacting": async ({ sessionID }) => {
      await tell(sessionID, "checkpoint", { prompt: last.get(sessionID) ?? "" })
    },
    event: async ({ event }) => {
      if (event.type !== "session.deleted") return
      const session = event.properties.info.id
      await tell(session, "end", { prompt: last.get(session) ?? "" })
      context.delete(session)
      last.delete(session)
    },
  }
}
