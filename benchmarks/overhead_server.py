"""The endpoint of `benchmarks.overhead`: a chat server that costs as little as it can, so that the client is measured.

`python overhead_server.py` prints its port. The URL says how long it takes: `http://127.0.0.1:PORT/20/v1` is 20 ms.
"""

import asyncio
import json

ANSWER = json.dumps(
    {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "The answer is 42."}}
        ],
        "usage": {"prompt_tokens": 20, "completion_tokens": 6, "total_tokens": 26},
    }
).encode()
REPLY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(ANSWER), ANSWER)


class Chat(asyncio.Protocol):
    """One connection; a client sends its next request only after the answer to the last."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.got = b""

    def data_received(self, data: bytes) -> None:
        """Answer once a whole request is there."""
        self.got += data
        head, mark, body = self.got.partition(b"\r\n\r\n")
        if not mark:
            return
        length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        if len(body) < int(length):
            return
        self.got = b""
        milliseconds = int(head.partition(b"/")[2].partition(b"/")[0])
        if milliseconds:
            asyncio.get_running_loop().call_later(milliseconds / 1000, self.reply)
        else:
            self.reply()

    def reply(self) -> None:
        """Write the answer, unless the client has gone."""
        if not self.transport.is_closing():
            self.transport.write(REPLY)


async def main() -> None:
    """Serve until the process is ended."""
    server = await asyncio.get_running_loop().create_server(Chat, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
