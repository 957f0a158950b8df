// SPDX-License-Identifier: Apache-2.0
// The server's endpoints, as the page uses them.

const kKeyName = "outrider-key";

export const key = {
  get: () => sessionStorage.getItem(kKeyName) ?? "",
  set: (value) => sessionStorage.setItem(kKeyName, value),
  forget: () => sessionStorage.removeItem(kKeyName),
};

// What went wrong, in words for the one who reads the page.
export class ServerError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

function headers() {
  const fields = { "Content-Type": "application/json" };
  if (key.get()) fields.Authorization = `Bearer ${key.get()}`;
  return fields;
}

function inWords(status, text) {
  const message = text.replace(/^\[[^\]]*\] /, ""); // what the engine was doing: "[generate] "
  if (status === 401) return "The server asks for a key that it knows.";
  if (status === 413) return "The conversation is longer than the server takes.";
  if (status === 429) return `The server is busy: ${message}`;
  if (status === 503) return `The server takes no more requests: ${message}`;
  if (status >= 500) return `Something went wrong in the server: ${message}`;
  return `The server refused this: ${message}`;
}

async function errorOf(response) {
  let message = response.statusText || `status ${response.status}`;
  try {
    message = (await response.json()).error.message;
  } catch {
    // No JSON: something in between has answered.
  }
  return new ServerError(response.status, inWords(response.status, message));
}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, { headers: headers(), ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError(0, "No answer from the server. Is it still running?");
  }
  if (!response.ok) throw await errorOf(response);
  return response;
}

// The first model that the server lists.
export async function model() {
  const list = await (await ask("/v1/models")).json();
  return list.data[0];
}

// Posts the request and calls onChunk with each chunk of the stream. Throws ServerError, or an
// AbortError once `signal` says so.
export async function stream(path, body, signal, onChunk) {
  const response = await ask(path, { method: "POST", body: JSON.stringify(body), signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    let part;
    try {
      part = await reader.read();
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ServerError(0, "The connection broke off in the middle of the reply.");
    }
    if (part.done) throw new ServerError(0, "The reply ended before it was complete.");
    held += part.value;
    for (let end = held.indexOf("\n\n"); end >= 0; end = held.indexOf("\n\n")) {
      const event = held.slice(0, end);
      held = held.slice(end + 2);
      if (!event.startsWith("data: ")) continue;
      const data = event.slice("data: ".length);
      if (data === "[DONE]") return;
      const chunk = JSON.parse(data);
      if (chunk.error) throw new ServerError(500, inWords(500, chunk.error.message));
      onChunk(chunk);
    }
  }
}
