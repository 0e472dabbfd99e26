// Package python holds the Python client, claimq for Python, to the server of its commit: its
// test runs pytest on it, and what its pages show, and builds its packages. The client itself is in
// clients/python; make_client.py writes the one without asyncio from the other, and a test compares.
package python
